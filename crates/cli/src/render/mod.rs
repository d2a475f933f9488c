//! All that is printed for people.
//!
//! - [`table`] aligns columns, [`ago`] says how long ago, [`paint`] has the
//!   colours, [`command_line`] writes arguments as a person would type them,
//!   [`amount`] writes numbers of bytes
//! - [`progress`] says how far a copy is, [`listing`] what is in a directory
//! - [`processes`] is the table that `outpost ps` shows
//! - [`mcp`] is what `outpost mcp` shows of servers and their answers
//! - [`explanation`] is what a command would be confined to
//! - [`transcript`] puts the output of a process into its order
//! - [`words`] says what went wrong
//! - [`out`] is where it goes, and what it means when nobody reads it

pub(crate) mod ago;
pub(crate) mod amount;
pub(crate) mod command_line;
pub(crate) mod explanation;
pub(crate) mod listing;
pub(crate) mod mcp;
pub(crate) mod out;
pub(crate) mod paint;
pub(crate) mod processes;
pub(crate) mod progress;
pub(crate) mod table;
pub(crate) mod transcript;
pub(crate) mod words;
