//! `cargo xtask bench`: what a user feels, measured beside the bare system doing the same thing.
//!
//! # Theory of operation
//!
//! A number without its neighbour says more about the machine than about the server. So every row
//! is a contest: the bare system, Outpost and, where one was given, a peer take turns, round by
//! round in one run, and what is compared is the medians of their rounds. Whoever is measured gets
//! a server of its own for the row, so that no row inherits the heap or the processes of another.
//!
//! - [`args`] is the command line, [`run`] the course of things, [`progress`] what is said meanwhile
//! - [`rows`] has one file per row: what its sides do in a round, and what they must reach
//! - [`contest`] lets the sides take turns; [`stats`] makes one number of many
//! - [`server`] is a server under test, Outpost or the peer; [`proc_files`] is what the kernel says
//!   about it
//! - [`client`] talks to it, by way of [`frames`] and [`message`]; it must never be what is measured;
//!   [`link`] is the two together
//! - [`crowd`] is many processes that stand by
//! - [`helper`] starts the bare side's programs: a [`relay`], and one that [`pour`]s a [`pattern`]
//!   out, so that what arrives can be checked
//! - [`line`] is a measured line with its [`bound`]; [`table`] and [`page`] show them, [`machine`]
//!   says where they were measured, and [`others`] how quiet it was there

mod args;
mod bound;
mod client;
mod contest;
mod crowd;
mod frames;
mod helper;
mod line;
mod link;
mod machine;
mod message;
mod others;
mod page;
mod pattern;
mod pour;
mod proc_files;
mod progress;
mod relay;
mod rows;
mod run;
mod server;
mod stats;
mod table;

pub(crate) use args::Args;
pub(crate) use helper::Helper;
pub(crate) use run::run;
