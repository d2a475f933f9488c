//! Events of a process.

use bytes::Bytes;
use outpost_types::{EndedBy, ResourceUsage};

use crate::{Seq, Stream};

/// A run of output bytes, as they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The event's number.
    pub seq: Seq,
    /// The stream that the bytes came from.
    pub stream: Stream,
    /// The bytes; cloning shares them.
    pub bytes: Bytes,
}

/// The exit status of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// The exit code: 128 + N for signal N, -1 if it is unknown.
    pub code: i32,
    /// Whether the output shows that the sandbox denied something.
    pub sandbox_denied: bool,
    /// The cause of its end, if the executor tells.
    pub ended_by: Option<EndedBy>,
    /// The resources that it has used, if the executor tells.
    pub usage: Option<ResourceUsage>,
}

/// The way in which the streams of a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputEnd {
    /// All writers have closed them.
    Whole,
    /// A descendant still held them open when the drain timeout expired.
    GivenUp,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The process wrote output.
    Output(Chunk),
    /// The process exited.
    Exited {
        /// The event's number.
        seq: Seq,
        /// The exit status.
        exit: Exit,
    },
    /// The streams ended; no event follows.
    Closed {
        /// The event's number.
        seq: Seq,
        /// The way in which the streams ended.
        end: OutputEnd,
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
