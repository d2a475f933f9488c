//! Sessions: the processes of one client, attached to a connection or not.

mod calls;
mod handle;
mod id;
mod lease;
mod link;
mod slots;
mod starting;

pub use calls::Terminated;
pub use handle::{Session, SessionOptions};
pub use id::SessionId;
pub(crate) use lease::Detached;
pub use lease::{Epoch, ResumeRefusal, Ttl};
pub use link::{Delivery, Link};
pub use slots::Reservation;
