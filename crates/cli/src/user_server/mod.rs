//! The user's own server: on a unix socket in the runtime directory, started on demand, ended by
//! `outpost stop` or when idle.
//!
//! - [`directory`]: socket, log and lock, private to the user
//! - [`launch`]: starts the server in the background
//! - [`connect`]: connects to it, starting it if necessary
//! - [`stop`]: ends it

mod connect;
mod directory;
mod launch;
mod stop;

pub(crate) use connect::{StartIfMissing, connect, find};
pub(crate) use stop::{StopOutcome, stop};
