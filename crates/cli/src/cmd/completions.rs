//! `outpost completions`: what shells need to know of the command line.

use std::{io::Write, process::ExitCode};

use clap::CommandFactory;

use crate::{
    args::{Arguments, Completions},
    render::out::conclude,
};

pub(crate) fn run(args: &Completions) -> ExitCode {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(args.shell, &mut command, "outpost", &mut script);
    let mut stdout = std::io::stdout().lock();
    let printed = stdout.write_all(&script).and_then(|()| stdout.flush());
    conclude(printed.map(|()| ExitCode::SUCCESS).map_err(Into::into))
}
