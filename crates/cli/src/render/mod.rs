//! Output for people.
//!
//! - [`table`]: aligned columns; [`style`]: colours; [`ago`], [`byte_size`]: times and sizes;
//!   [`command_line`]: quoting
//! - [`progress`]: progress bar of a copy; [`listing`]: directories
//! - [`processes`]: output of `outpost ps`
//! - [`mcp`]: output of `outpost mcp`
//! - [`explanation`]: output of `outpost sandbox --explain`
//! - [`transcript`]: output of a process in order
//! - [`errors`]: error messages
//! - [`out`]: stdout, stderr and exit codes

pub(crate) mod ago;
pub(crate) mod byte_size;
pub(crate) mod command_line;
pub(crate) mod errors;
pub(crate) mod explanation;
pub(crate) mod listing;
pub(crate) mod mcp;
pub(crate) mod out;
pub(crate) mod processes;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod transcript;
