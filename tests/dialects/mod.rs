//! The faces whose processes belong to a connection.
//!
//! - [`face`] is what two of them have in common, so that the same is expected of both
//! - [`v0`] is the third, which is different enough

mod caps;
mod commands;
mod connections;
mod ends;
mod environments;
mod face;
mod inputs;
mod outputs;
mod refusals;
mod sandboxes;
mod slow_reader;
mod spawns;
mod terminals;
mod v0;
