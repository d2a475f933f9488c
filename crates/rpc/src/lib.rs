//! A JSON-RPC peer that never knows its transport.
//!
//! # Theory of operation
//!
//! A connection is two halves and the tasks that own them.
//!
//! - [`Inbound`] turns bytes into [`Received`] messages, for WebSocket frames
//!   and for lines alike ([`Framing`]). It bounds what it holds: a message over
//!   the limit is skipped, not buffered, and reported as such.
//! - [`Outbox`] is where everybody leaves what is to be sent, and
//!   [`outbox::deliver`] is the one task that writes. Answers go first. Output is not
//!   queued at all: a process with news puts its [`Feed`] on the ready queue,
//!   and the writer lets the feeds take turns at filling the next write.
//! - [`Lanes`] keeps requests with the same key in order and lets all others
//!   run beside each other; [`Admission`] bounds how many there are.

mod admission;
mod frames;
mod framing;
mod inbound;
mod lanes;
mod lines;
pub mod outbox;
mod room;
pub mod ws;

pub use admission::{Admission, Ticket};
pub use frames::Frames;
pub use framing::{Framing, Role};
pub use inbound::{Inbound, InboundError, Pulse, Received};
pub use lanes::Lanes;
pub use outbox::{Answer, CloseReason, Feed, More, Outbox};

/// The reading half of a transport.
pub type ReadHalf = Box<dyn tokio::io::AsyncRead + Send + Unpin>;
/// The writing half of a transport.
pub type WriteHalf = Box<dyn tokio::io::AsyncWrite + Send + Unpin>;
