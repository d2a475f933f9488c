//! What there is to hear of a process.

use bytes::Bytes;
use outpost_journal as journal;
use outpost_protocol::StreamName;

/// One event of a process. Their numbers begin at 1 and have no holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has written something.
    Output {
        /// The event's number.
        seq: u64,
        /// Where it was written.
        stream: StreamName,
        /// The bytes; cloning shares them.
        bytes: Bytes,
    },
    /// It has ended; what it wrote before has lower numbers.
    Exited {
        /// The event's number.
        seq: u64,
        /// Its exit code: 128 + N if signal N ended it, -1 if it was lost.
        code: i32,
        /// Whether it seems to have failed because of its sandbox.
        sandbox_denied: bool,
    },
    /// All its streams have ended too. Nothing follows.
    Closed {
        /// The event's number.
        seq: u64,
    },
    /// Nothing more will be heard of it, although it may not have ended. The
    /// last event where there is no close.
    Failed {
        /// What went wrong.
        message: String,
    },
}

/// Output and state of a process, for those who poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Output behind the cursor, oldest first. If the first number isn't the
    /// one after the cursor, what is between them isn't retained any more.
    pub chunks: Vec<Chunk>,
    /// The cursor to go on with is the number before this one.
    pub next_seq: u64,
    /// How it ended, once that is known.
    pub exit: Option<crate::Exit>,
    /// Whether nothing will follow.
    pub closed: bool,
    /// Why nothing more will be heard of it.
    pub failure: Option<String>,
}

/// A run of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The event's number.
    pub seq: u64,
    /// Where it was written.
    pub stream: StreamName,
    /// The bytes; cloning shares them.
    pub bytes: Bytes,
}

/// An event without its number, on its way into a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Output(journal::Stream, Bytes),
    Exited(journal::Exit),
    Closed,
}

impl From<journal::Event> for Event {
    fn from(event: journal::Event) -> Self {
        match event {
            journal::Event::Output(chunk) => Event::Output {
                seq: chunk.seq.0,
                stream: stream_name(chunk.stream),
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

impl From<journal::Event> for Fact {
    fn from(event: journal::Event) -> Self {
        match event {
            journal::Event::Output(chunk) => Fact::Output(chunk.stream, chunk.bytes),
            journal::Event::Exited { exit, .. } => Fact::Exited(exit),
            journal::Event::Closed { .. } => Fact::Closed,
        }
    }
}

impl From<journal::Chunk> for Chunk {
    fn from(chunk: journal::Chunk) -> Self {
        Chunk {
            seq: chunk.seq.0,
            stream: stream_name(chunk.stream),
            bytes: chunk.bytes,
        }
    }
}

pub(crate) fn stream_name(stream: journal::Stream) -> StreamName {
    match stream {
        journal::Stream::Stdout => StreamName::Stdout,
        journal::Stream::Stderr => StreamName::Stderr,
        journal::Stream::Pty => StreamName::Pty,
    }
}

pub(crate) fn stream_of(name: StreamName) -> journal::Stream {
    match name {
        StreamName::Stdout => journal::Stream::Stdout,
        StreamName::Stderr => journal::Stream::Stderr,
        StreamName::Pty => journal::Stream::Pty,
    }
}
