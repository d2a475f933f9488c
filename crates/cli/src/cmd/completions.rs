//! `outpost completions`: prints shell completions.

use std::{io::Write, process::ExitCode};

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::args::Arguments;

/// Arguments of `outpost completions`.
#[derive(clap::Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// Prints the script.
pub(crate) fn completions(args: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    let mut command = for_people(&Arguments::command());
    clap_complete::generate(args.shell, &mut command, "outpost", &mut script);
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&script)?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// A copy of the command line without hidden arguments, which the generators don't filter.
fn for_people(command: &Command) -> Command {
    let shown = Command::new(command.get_name().to_owned());
    let shown = match command.get_about() {
        Some(about) => shown.about(about.clone()),
        None => shown,
    };
    let args = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown
        .args(args.cloned())
        .subcommands(subcommands.map(for_people))
}
