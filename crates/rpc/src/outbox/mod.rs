//! The writing half of a connection.
//!
//! Whoever has something to say leaves it in the [`Outbox`]; [`deliver`] is the
//! one task that writes. There is no queue of output: a [`Feed`] is asked for
//! its next frames only when there is room for them on the wire, which is what
//! makes a slow reader cost nothing but its own process's patience.

mod deliver;
mod feed;
mod queue;

pub use deliver::{Delivery, deliver};
pub use feed::{Feed, More};
pub use queue::{Answer, CloseReason, Outbox, Reservation};
