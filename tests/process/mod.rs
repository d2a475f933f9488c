//! Tests the `process/*` methods and events.

mod cwd;
mod environment;
mod events;
mod execution;
mod exit;
mod identity;
mod list;
mod long_poll;
mod read;
mod retention;
mod sandbox;
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
