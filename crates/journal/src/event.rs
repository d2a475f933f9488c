//! What a log is made of.

use bytes::Bytes;

use crate::Seq;

/// Which of a process's streams a chunk came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// The standard output pipe.
    Stdout,
    /// The standard error pipe.
    Stderr,
    /// The one merged stream of a terminal.
    Pty,
}

/// A run of output bytes, as they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The event's number.
    pub seq: Seq,
    /// Where the bytes came from.
    pub stream: Stream,
    /// The bytes; cloning shares them.
    pub bytes: Bytes,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code as the wire knows it (128 + N for a signal, -1 for lost).
    pub code: i32,
    /// Whether the output shows that the sandbox refused something.
    pub sandbox_denied: bool,
}

/// How the streams of a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nobody can write to them any more.
    Whole,
    /// Somebody held them open for longer than they were waited for.
    GivenUp,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes were read.
    Output(Chunk),
    /// The status of the child is known.
    Exited {
        /// The event's number.
        seq: Seq,
        /// The status.
        exit: Exit,
    },
    /// Nothing follows.
    Closed {
        /// The event's number.
        seq: Seq,
        /// How the streams ended.
        end: End,
    },
}

impl Event {
    /// The event's number.
    #[must_use]
    pub fn seq(&self) -> Seq {
        match self {
            Event::Output(chunk) => chunk.seq,
            Event::Exited { seq, .. } | Event::Closed { seq, .. } => *seq,
        }
    }
}
