//! Detached work, as in tmux: each `outpost run --detach` is a session with one process, which
//! continues without a client until it is ended.
//!
//! - [`server`]: connects to the user's own server, or to a URL
//! - [`sessions`]: lists and labels of sessions
//! - [`mod@start`], [`find`]: start a process, and find one by its name

mod find;
mod server;
mod sessions;
mod start;

pub(crate) use find::{Claim, Found, has_been_taken_over, open};
pub(crate) use server::{brief_options, connect, connect_if_running};
pub(crate) use sessions::{command_of, label_of, list, processes};
pub(crate) use start::start;
