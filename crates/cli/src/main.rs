//! The binary `outpost`: one thin file per subcommand below [`cmd`].

mod args;
mod cmd;
mod colour;
mod config;
mod console;
mod detached;
mod exit;
mod home;
mod log_file;
mod logging;
mod open_files;
mod render;
mod target;

use std::process::ExitCode;

use crate::args::{Arguments, Subcommand};

fn main() -> ExitCode {
    match Arguments::read().subcommand {
        Subcommand::Serve(serve) => cmd::serve::run(serve),
        Subcommand::Run(run) => cmd::run::run(&run),
        Subcommand::Ps(ps) => cmd::ps::run(&ps),
        Subcommand::Logs(logs) => cmd::logs::run(&logs),
        Subcommand::Attach(attach) => cmd::attach::run(&attach),
        Subcommand::Kill(kill) => cmd::kill::run(&kill),
        Subcommand::Stop => cmd::stop::run(),
        Subcommand::Completions(completions) => cmd::completions::run(&completions),
        Subcommand::Config(config) => cmd::config::run(&config),
        Subcommand::Schema(schema) => cmd::schema::run(&schema),
        Subcommand::GuardTerminal => console::guard::run(),
        Subcommand::Keeper => cmd::keeper::run(),
    }
}
