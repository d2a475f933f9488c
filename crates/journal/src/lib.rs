//! The event log of one process, and the cursors on it.
//!
//! # Theory of operation
//!
//! A process is a log: output, exit and close are events, numbered from 1
//! without gaps. The process's actor appends; every reader is a cursor, which
//! is the last number it has seen ([`Seq`]).
//!
//! - A pushing connection uses [`Journal::events_after`]: the events after its
//!   cursor, in order.
//! - A long poll uses [`Journal::page`]: the output after its cursor, and the
//!   state of the process.
//! - The [owner's](OwnerCursor) cursor exerts backpressure. While it is attached, no
//!   event after it is evicted. Once the log is a window ahead of it,
//!   [`Journal::has_space`] turns false, so that the actor stops reading and the
//!   child blocks in `write`, as on any full pipe.
//! - Other readers that come too late see a gap: the first number they get is
//!   not the one after their cursor.
//!
//! The crate is pure: no clock, no runtime, no system calls.

mod event;
mod journal;
mod limits;
mod owner_cursor;
mod page;

pub use event::{Chunk, Event, Exit, OutputEnd};
pub use journal::Journal;
pub use limits::Limits;
pub use outpost_types::{Seq, Stream};
pub use owner_cursor::OwnerCursor;
pub use page::Page;
