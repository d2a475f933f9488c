//! Tests the dialects whose processes belong to a connection.
//!
//! - [`dialect`]: support for behaviour that `process/spawn` and `command/exec` share
//! - [`v0`]: the third dialect, which has its own tests

mod caps;
mod commands;
mod connections;
mod dialect;
mod ends;
mod environments;
mod errors;
mod inputs;
mod limits;
mod outputs;
mod sandboxes;
mod slow_reader;
mod spawns;
mod terminals;
mod v0;
