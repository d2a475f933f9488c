//! What is known of one process here: its log, and those who read it.
//!
//! Whoever hears of the process, the pump of a local place or the reader of a
//! connection, publishes into its [`Record`]; streams, polls and waits are
//! cursors on it. The record is bounded: it keeps what a late reader may want,
//! and what the slowest reader has not taken. When that is a window, there is
//! no room, and whoever publishes waits or stops acknowledging.

mod readers;
#[expect(
    clippy::module_inception,
    reason = "the room is named after the thing that is in it"
)]
mod record;

pub(crate) use record::{Record, Source};
