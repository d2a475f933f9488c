//! Tests the `process/*` methods and events.

mod cwd;
mod ended_by;
mod environment;
mod events;
mod execution;
mod exit;
mod identity;
mod limits;
mod list;
mod long_poll;
mod read;
mod retention;
mod sandbox;
mod shell_snapshot;
mod signal;
mod start;
mod stdin;
mod terminal;
mod terminate;
mod termination;
mod timeout;
mod tree;
mod write;
mod write_queue;

pub(crate) use ended_by::exit;
pub(crate) use limits::with_limit;
