//! `cargo xtask bench`: benchmarks against the bare operating system.
//!
//! # Theory of operation
//!
//! In every row the bare system, Outpost and an optional peer take turns, round by round in one
//! run, and the medians of their rounds are compared. Each row starts its own servers, so that no
//! row inherits the heap or the processes of another.
//!
//! - [`args`]: command line; [`run`]: build, measure, print; [`progress`]: progress on stderr
//! - [`rows`]: one file per row with its measurement and bounds
//! - [`rounds`]: runs the sides in turns; [`stats`]: medians and percentiles
//! - [`server`]: a server under test; [`proc_files`]: its memory and CPU time
//! - [`client`]: a minimal client on [`frames`] and [`message`]; [`connected_server`]: a server
//!   with a client
//! - [`idle_processes`]: many idle processes
//! - [`bare_programs`]: programs of the bare side: [`relay`] and [`flood_writer`], which writes a
//!   verifiable [`pattern`]
//! - [`measurement`] and [`bound`]: results; [`table`] and [`page`] print them; [`machine`] and
//!   [`other_load`] describe the circumstances

mod args;
mod bare_programs;
mod bound;
mod client;
mod connected_server;
mod flood_writer;
mod frames;
mod idle_processes;
mod machine;
mod measurement;
mod message;
mod other_load;
mod page;
mod pattern;
mod proc_files;
mod progress;
mod relay;
mod rounds;
mod rows;
mod run;
mod server;
mod stats;
mod table;

pub(crate) use args::Args;
pub(crate) use bare_programs::BareProgram;
pub(crate) use run::run;
