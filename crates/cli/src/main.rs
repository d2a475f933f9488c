//! The `outpost` binary. Each subcommand has a file in [`cmd`].

mod args;
mod cmd;
mod colour;
mod config;
mod console;
mod detached;
mod disconnect;
mod env_args;
mod exit;
mod log_file;
mod logging;
mod open_files;
mod render;
mod target;
mod transfer;
mod user_server;

use std::process::ExitCode;

use crate::args::{Arguments, Subcommand};

fn main() -> ExitCode {
    // Checked first, because the start of every sandboxed process runs this program twice.
    if let Some(arguments) = cmd::confine::arguments() {
        return cmd::confine::run(arguments);
    }
    match Arguments::read().subcommand {
        Subcommand::Serve(serve) => cmd::serve::run(serve),
        Subcommand::Run(run) => cmd::run::run(&run),
        Subcommand::Cp(cp) => cmd::cp::run(&cp),
        Subcommand::Ls(ls) => cmd::ls::run(&ls),
        Subcommand::Cat(cat) => cmd::cat::run(&cat),
        Subcommand::Sandbox(sandbox) => cmd::sandbox::run(sandbox),
        Subcommand::Doctor(doctor) => cmd::doctor::run(&doctor),
        Subcommand::Ps(ps) => cmd::ps::run(&ps),
        Subcommand::Logs(logs) => cmd::logs::run(&logs),
        Subcommand::Attach(attach) => cmd::attach::run(&attach),
        Subcommand::Kill(kill) => cmd::kill::run(&kill),
        Subcommand::Stop => cmd::stop::run(),
        Subcommand::Completions(completions) => cmd::completions::run(&completions),
        Subcommand::Config(config) => cmd::config::run(&config),
        Subcommand::Schema(schema) => cmd::schema::run(&schema),
        Subcommand::Mcp(mcp) => cmd::mcp::run(&mcp),
        Subcommand::GuardTerminal => console::guard::run(),
        Subcommand::Subreaper => cmd::subreaper::run(),
    }
}
