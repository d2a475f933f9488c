//! The `outpost` binary. Each subcommand has a file in [`cmd`].

mod args;
mod audit_log;
mod certificate;
mod cmd;
mod config;
mod console;
mod detached;
mod endpoint;
mod exit;
mod log_queue;
mod logging;
mod render;
mod restrictions;
mod ssh;
mod state_directory;
mod target;
mod transfer;
mod units;
mod user_server;
mod working_directory;

use std::process::ExitCode;

use crate::{
    args::{Arguments, Subcommand},
    exit::{of_error, of_remote_error, report, run},
};

fn main() -> ExitCode {
    // Checked first, because the start of every sandboxed process runs this program again.
    if let Some(arguments) = cmd::hidden::confine_arguments() {
        return cmd::hidden::confine(arguments);
    }
    if let Err(error) = endpoint::protect_token() {
        return report(Err(error), of_error);
    }
    match Arguments::read().subcommand {
        Subcommand::Serve(serve) => cmd::serve::run(serve),
        Subcommand::Run(run) => cmd::run::run(&run),
        Subcommand::Cp(cp) => run(cmd::cp::cp(&cp), of_remote_error),
        Subcommand::Ls(ls) => run(cmd::ls::ls(&ls), of_remote_error),
        Subcommand::Cat(cat) => run(cmd::cat::cat(&cat), of_remote_error),
        Subcommand::Watch(watch) => run(cmd::watch::watch(&watch), of_remote_error),
        Subcommand::Sandbox(sandbox) => report(cmd::sandbox::sandbox(sandbox), of_error),
        Subcommand::Doctor(doctor) => run(cmd::doctor::doctor(&doctor), of_error),
        Subcommand::Ps(ps) => run(cmd::ps::ps(&ps), of_remote_error),
        Subcommand::Logs(logs) => run(cmd::logs::logs(&logs), of_remote_error),
        Subcommand::Attach(attach) => run(cmd::attach::attach(&attach), of_remote_error),
        Subcommand::Kill(kill) => run(cmd::kill::kill(&kill), of_remote_error),
        Subcommand::Token(token) => report(cmd::token::token(token), of_error),
        Subcommand::Stop => run(cmd::stop::stop(), of_remote_error),
        Subcommand::Completions(args) => report(cmd::completions::completions(&args), of_error),
        Subcommand::Config(config) => report(cmd::config::config(&config), of_error),
        Subcommand::Schema(schema) => report(cmd::schema::schema(&schema), of_error),
        Subcommand::Hosts(hosts) => run(cmd::hosts::hosts(&hosts), of_remote_error),
        Subcommand::Mcp(mcp) => run(cmd::mcp::mcp(&mcp), of_remote_error),
        Subcommand::Relay => run(cmd::hidden::relay(), of_error),
        Subcommand::GuardTerminal => console::guard_terminal(),
        Subcommand::Subreaper => outpost_engine::subreaper::main(),
    }
}
