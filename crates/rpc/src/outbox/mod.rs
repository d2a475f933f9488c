//! The writing half of a connection.
//!
//! [`Outbox`] queues messages, and [`deliver`] is the one task that writes. Process output
//! is not queued: a [`Feed`] is asked for frames only when the transport can take them, so
//! a slow reader needs no extra memory and applies backpressure to its own processes.

mod deliver;
mod queue;

pub use deliver::{WriterOptions, deliver};
pub use queue::{CloseReason, Feed, MessageFragment, More, Outbox, OutgoingMessage, Reservation};
