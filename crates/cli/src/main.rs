//! The binary `outpost`: one thin file per subcommand below [`cmd`].

mod args;
mod cmd;
mod colour;
mod config;
mod logging;
mod open_files;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Subcommand};

fn main() -> ExitCode {
    match Arguments::parse().subcommand {
        Subcommand::Serve(serve) => cmd::serve::run(serve),
        Subcommand::Config(config) => cmd::config::run(&config),
        Subcommand::Schema(schema) => cmd::schema::run(&schema),
        Subcommand::Keeper => cmd::keeper::run(),
    }
}
