//! Sessions: own the processes of one client, with or without a connection.
//!
//! - [`handle`]: [`Session`], and the connection that it is attached to
//! - [`lease`]: whether it is attached, detached or ended; pure
//! - [`lifetime`]: resume, detach and end
//! - [`operations`]: read, write, signal, resize and terminate by process id
//! - [`slots`]: process ids, reserved or in use

mod handle;
mod lease;
mod lifetime;
mod operations;
mod slots;

pub use handle::{Link, Session, SessionId, SessionOptions};
pub(crate) use lease::Detached;
pub use lease::{Epoch, ResumeError, Ttl};
pub use operations::Terminated;
pub use slots::Reservation;
