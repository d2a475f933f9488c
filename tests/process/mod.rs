//! What can be done with a process, verb by verb.

mod cwd;
mod environment;
mod events;
mod execution;
mod exit;
mod identity;
mod ladder;
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
mod timeout;
mod tree;
mod write;
mod write_queue;
