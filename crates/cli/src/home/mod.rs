//! The server that every user has: on a unix socket in the runtime directory,
//! started when somebody needs it, ended by `outpost stop` or when it has had
//! nothing to do for a while.
//!
//! - [`folder`] is where it lives: socket, log and lock, closed to everybody else
//! - [`launch`] starts it behind the back of the person who needs it
//! - [`connect`] finds it, or has it started
//! - [`quit`] ends it

mod connect;
mod folder;
mod launch;
mod quit;

pub(crate) use connect::{StartIfMissing, connect, find};
pub(crate) use quit::{Quit, quit};
