//! The binary `outpost`: one thin file per subcommand below [`cmd`].

mod args;
mod cmd;
mod console;
mod exit;
mod logging;
mod open_files;
mod target;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Subcommand};

fn main() -> ExitCode {
    match Arguments::parse().subcommand {
        Subcommand::Serve(serve) => cmd::serve::run(&serve),
        Subcommand::Run(run) => cmd::run::run(&run),
        Subcommand::GuardTerminal => console::guard::run(),
        Subcommand::Keeper => cmd::keeper::run(),
    }
}
