//! `cargo xtask bench`: benchmarks against the bare operating system.
//!
//! # Theory of operation
//!
//! In every row the bare system, Outpost and an optional peer take turns, round by round in one
//! run, and the medians of their rounds are compared. Each row starts its own servers, so that no
//! row inherits the heap or the processes of another.
//!
//! - [`args`]: command line; [`run`]: build, measure, print
//! - [`rows`]: the measurements and their bounds
//! - [`rounds`]: runs the sides in turns and computes medians
//! - [`server`]: a server under test; [`client`]: a minimal client; [`message`]: what it receives
//! - [`programs`]: programs of the bare side; [`pattern`]: the contents of a flood
//! - [`measurement`]: results with their bounds; [`table`] prints them; [`machine`] describes the
//!   circumstances

mod args;
mod client;
mod machine;
mod measurement;
mod message;
mod pattern;
mod programs;
mod rounds;
mod rows;
mod run;
mod server;
mod table;

pub(crate) use args::Args;
pub(crate) use programs::BenchProgram;
pub(crate) use run::run;
