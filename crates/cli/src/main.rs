//! The binary `outpost`: one thin file per subcommand below [`cmd`].

mod args;
mod cmd;
mod colour;
mod config;
mod console;
mod detached;
mod exit;
mod farewell;
mod handed_on;
mod home;
mod launch_script;
mod log_file;
mod logging;
mod open_files;
mod render;
mod target;
mod transfer;

use std::process::ExitCode;

use crate::args::{Arguments, Subcommand};

fn main() -> ExitCode {
    // Every confined process comes by here twice and waits for it.
    if let Some(arguments) = cmd::confine::asked() {
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
        Subcommand::Keeper => cmd::keeper::run(),
    }
}
