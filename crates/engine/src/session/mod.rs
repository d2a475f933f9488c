//! Sessions: own the processes of one client, with or without a connection.

mod handle;
mod id;
mod lease;
mod link;
mod list;
mod operations;
mod slots;
mod start;

pub use handle::{Session, SessionOptions};
pub use id::SessionId;
pub(crate) use lease::Detached;
pub use lease::{Epoch, ResumeError, Ttl};
pub use link::Link;
pub use operations::Terminated;
pub use slots::Reservation;
