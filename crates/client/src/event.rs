//! Events of a process, as users see them.

use bytes::Bytes;
use outpost_journal as journal;
use outpost_protocol::Stream;

/// An event of a process. Numbers start at 1 and are contiguous.
#[derive(Clone, Debug)]
pub enum Event {
    /// The process has written output.
    Output {
        /// The event's number.
        seq: u64,
        /// The stream that was written to.
        stream: Stream,
        /// The output. Cloning is cheap.
        bytes: Bytes,
    },
    /// The process has exited. Output that it wrote before has lower numbers; output of its
    /// children may follow.
    Exited {
        /// The event's number.
        seq: u64,
        /// The exit code: 128 + N if signal N killed the process, -1 if the code is unknown.
        code: i32,
        /// Whether the process appears to have failed because of its sandbox.
        sandbox_denied: bool,
    },
    /// All output streams have ended. The last event of a process.
    Closed {
        /// The event's number.
        seq: u64,
    },
    /// The executor can no longer observe the process, which may still run. The last event if
    /// there is no [`Event::Closed`].
    Failed {
        /// The error.
        error: crate::Error,
    },
}

/// Output and state of a process: the result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Output after the cursor, oldest first. If the first number is not the one after the
    /// cursor, the output between them is no longer retained.
    pub chunks: Vec<Chunk>,
    /// The number of the next event. To continue, poll with the number before this one.
    pub next_seq: u64,
    /// The exit, if the process has exited.
    pub exit: Option<crate::Exit>,
    /// Whether the process is closed: no events will follow.
    pub closed: bool,
    /// The error, if the executor can no longer observe the process.
    pub failure: Option<String>,
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The event's number.
    pub seq: u64,
    /// The stream that was written to.
    pub stream: Stream,
    /// The output. Cloning is cheap.
    pub bytes: Bytes,
}

/// Counts the bytes of output of an event.
#[cfg(feature = "remote")]
pub(crate) fn output_len(event: &journal::Event) -> usize {
    match event {
        journal::Event::Output(chunk) => chunk.bytes.len(),
        journal::Event::Exited { .. } | journal::Event::Closed { .. } => 0,
    }
}

impl From<journal::Event> for Event {
    fn from(event: journal::Event) -> Self {
        match event {
            journal::Event::Output(chunk) => Event::Output {
                seq: chunk.seq.0,
                stream: chunk.stream,
                bytes: chunk.bytes,
            },
            journal::Event::Exited { seq, exit } => Event::Exited {
                seq: seq.0,
                code: exit.code,
                sandbox_denied: exit.sandbox_denied,
            },
            journal::Event::Closed { seq, .. } => Event::Closed { seq: seq.0 },
        }
    }
}

impl From<journal::Chunk> for Chunk {
    fn from(chunk: journal::Chunk) -> Self {
        Chunk {
            seq: chunk.seq.0,
            stream: chunk.stream,
            bytes: chunk.bytes,
        }
    }
}
