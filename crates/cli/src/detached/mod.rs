//! Detached work, as in tmux: each `outpost run --detach` is a session with one process, which
//! continues without a client until it is ended.
//!
//! - [`id`]: names of processes; [`session_label`]: labels of sessions
//! - [`server`]: the user's own server, or a URL
//! - [`start`], [`find`], [`list`]: the operations

mod find;
mod id;
mod list;
mod server;
mod session_label;
mod start;

pub(crate) use find::{Claim, Found, open};
pub(crate) use list::{list, processes};
pub(crate) use server::{ServerTarget, brief_options};
pub(crate) use session_label::{command_of, label_of};
pub(crate) use start::{NotStarted, start};
