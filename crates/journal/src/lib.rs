//! The log of one process, and the cursors on it.
//!
//! # Theory of operation
//!
//! A process is a log: output, exit and close are events, numbered from 1
//! without holes. Whoever reads the child's pipes appends; everybody else is a
//! cursor, and a cursor is only the last number it has seen ([`Seq`]).
//!
//! - [`Journal::events_after`] is what a pushing connection uses: the events
//!   behind its cursor, in order.
//! - [`Journal::page`] is what a long poll uses: the output behind its cursor,
//!   and the state of the process.
//! - One cursor is special, the [owner's](Owner): while it is attached nothing
//!   behind it is evicted, and once the log is a window ahead of it
//!   [`Journal::has_room`] turns false, so that the reader of the pipes stops
//!   and the child blocks in `write`, as on any full pipe.
//! - Everybody else sees a gap when they come too late: the first number they
//!   get is not the one after their cursor.
//!
//! The crate is pure: no clock, no runtime, no system calls.

mod event;
mod journal;
mod limits;
mod owner;
mod page;
mod seq;

pub use event::{Chunk, End, Event, Exit, Stream};
pub use journal::Journal;
pub use limits::Limits;
pub use owner::Owner;
pub use page::Page;
pub use seq::Seq;
