//! Sessions: own the processes of one client, with or without a connection.

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
