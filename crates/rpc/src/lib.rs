//! A JSON-RPC peer over any byte stream.
//!
//! # Theory of operation
//!
//! A connection is two halves and the tasks that own them.
//!
//! - [`Inbound`] parses received bytes into [`Received`] messages, for WebSocket
//!   frames and for lines ([`Framing`]). Its buffer is bounded: a message over the
//!   limit is skipped, not buffered, and reported with its id.
//! - [`Outbox`] queues messages to send, and [`outbox::deliver`] is the one task
//!   that writes. Queued messages go first. Process output is not queued: a process
//!   with new events puts its [`Feed`] on the ready queue, and the writer asks the
//!   feeds in turn to fill the next write.
//! - [`Lanes`] runs requests with the same key in order and all others
//!   concurrently; [`ProcessLanes`] lets control requests about a process overtake;
//!   [`Admission`] bounds the number of requests.
//! - [`MemoryBudget`] bounds the memory of all connections. Each has a [`MemoryShare`] of
//!   it, from which received messages and large answers take a [`MemoryCharge`]. Connections that do not
//!   read are closed if others wait for their memory.

mod admission;
mod frame_buffer;
mod inbound;
mod lanes;
mod lines;
mod memory_budget;
pub mod outbox;
mod peer_activity;
mod receive_buffer;
mod skipping;
mod write_progress;
pub mod ws;

pub use admission::{Admission, Ticket};
pub use frame_buffer::{FrameBuffer, Framing, Role};
pub use inbound::{Inbound, InboundError, Received};
pub use lanes::{Job, Lanes, ProcessLanes};
pub use memory_budget::{MemoryBudget, MemoryCharge, MemoryShare, PeerMemory, charged_bytes};
pub use outbox::{CloseReason, Feed, More, Outbox, OutgoingMessage};
pub use peer_activity::{PausedReads, PeerActivity};
pub use skipping::SkipReason;

/// The reading half of a transport.
pub type ReadHalf = Box<dyn tokio::io::AsyncRead + Send + Unpin>;
/// The writing half of a transport.
pub type WriteHalf = Box<dyn tokio::io::AsyncWrite + Send + Unpin>;
