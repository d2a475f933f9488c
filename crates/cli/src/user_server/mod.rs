//! The user's own server: on a unix socket in the runtime directory, started on demand, ended by
//! `outpost stop` or when idle.
//!
//! - [`directory`]: socket, log and lock, private to the user
//! - [`launch`]: starts the server in the background
//! - [`running`]: finds its process if the socket is gone
//! - [`mod@connect`]: connects to it, starting it if necessary, and stops it

mod connect;
mod directory;
mod launch;
mod running;

pub(crate) use connect::{WAS_KILLED, connect, find, open_socket, stop, was_killed};
pub(crate) use directory::{own_path, runtime_directory};
pub(crate) use launch::LaunchFailure;
