//! Detached work, as in tmux: each `outpost run --detach` is a session with one process, which
//! continues without a client until it is ended.
//!
//! - [`server`]: connects to the user's own server, or to a URL
//! - [`sessions`]: lists and labels of sessions
//! - [`mod@start`], [`find`]: start a process, and find one by its name
//! - [`session_keys`]: keys of sessions on servers that don't list them

use outpost_engine::sandbox::planning::OwnPath;

mod find;
mod server;
mod session_keys;
mod sessions;
mod start;

pub(crate) use find::{FoundProcess, IfAttached, attach_command, has_been_taken_over, open};
pub(crate) use server::{brief_options, connect, connect_if_running};
pub(crate) use sessions::{command_of, label_of, list, processes};
pub(crate) use start::start;

/// The directory of the keys of sessions, if there are any, as a path that sandboxed processes must not
/// see.
pub(crate) fn own_path() -> Option<OwnPath> {
    session_keys::SessionKeys::own_path()
}
