//! Development tasks: `cargo xtask setup`, `test`, `bench`, `soak` and `tidy`.
//!
//! A workspace program instead of scripts: it needs only Rust, and its checks have tests.
//!
//! - [`setup`]: installs what the tests need, including [`mcp_servers`]
//! - [`test`]: the test command; [`unprivileged`] is its second run as an unprivileged user
//! - [`bench`]: benchmarks against the bare operating system
//! - [`soak`]: long chaos test with many clients
//! - [`tidy`]: repository rules that neither the compiler nor clippy checks
//! - [`command`]: runs other programs; [`checkout`]: the repository's files

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program"
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
    about = "Development tasks of Outpost"
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the tests need and is missing
    Setup,
    /// Run all checks and tests; as root also as an unprivileged user
    Test(test::Args),
    /// Benchmark against the bare operating system
    Bench(bench::Args),
    /// Helper programs of the benchmark
    #[command(hide = true)]
    BenchProgram(bench::BenchProgram),
    /// Run a chaos test with many clients and check for leaks
    Soak(soak::Args),
    /// Check repository rules that the compiler does not know
    Tidy,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Setup => setup::run(),
        Task::Test(args) => test::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::BenchProgram(program) => program.run(),
        Task::Soak(args) => soak::run(&args),
        Task::Tidy => tidy::run(),
    };
    // Returning the error would print a backtrace of xtask with RUST_BACKTRACE set.
    outcome.map_or_else(
        |error| {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}
