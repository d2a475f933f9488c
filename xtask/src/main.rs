//! What a contributor or CI runs: `cargo xtask setup`, `test`, `bench`,
//! `soak` and `tidy`.
//!
//! This is a program of the workspace rather than a folder of scripts, so that it needs nothing
//! but Rust to start with and its checks have tests of their own.
//!
//! - [`setup`] installs what tests need and only that, with the [`mcp_servers`] among it
//! - [`test`] is *the* test command, one step after the other; [`unprivileged`] is its step that
//!   runs the same tests again as a user without privileges
//! - [`bench`] measures what a user feels, beside the bare system
//! - [`soak`] does what chaos tests do, with many clients and for longer
//! - [`tidy`] checks what neither the compiler nor clippy knows about this house
//! - [`command`] runs other programs; [`checkout`] is the folder all this is about

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people: telling them what it does is its output"
)]

mod bench;
mod checkout;
mod command;
mod mcp_servers;
mod setup;
mod soak;
mod test;
mod tidy;
mod unprivileged;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "xtask",
    bin_name = "cargo xtask",
    about = "What a contributor or CI runs"
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what tests need, unless it is there already
    Setup,
    /// Check everything: setup, format, tidy, clippy, all tests, as root also without privileges
    Test(test::Args),
    /// Measure what a user feels, beside the bare system doing the same thing
    Bench(bench::Args),
    /// One of the programs that the benchmark compares with
    #[command(hide = true)]
    BenchHelper(bench::Helper),
    /// Many clients, processes, cuts, kills and floods for a while; then a look at what is left
    Soak(soak::Args),
    /// Check the rules of the house that the compiler doesn't know
    Tidy,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Setup => setup::run(),
        Task::Test(args) => test::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::BenchHelper(helper) => helper.run(),
        Task::Soak(args) => soak::run(&args),
        Task::Tidy => tidy::run(),
    };
    // Not by returning it: that would print a backtrace of this program wherever one is asked for,
    // and what failed is hardly ever this program.
    outcome.map_or_else(
        |error| {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}
