//! The events of a process as users see them: one by one, as a stream, in pages, or as the bytes of
//! one output stream.

use std::{
    collections::VecDeque,
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use futures_util::Stream as EventStream;
use outpost_journal::{self as journal, Seq};
use outpost_protocol::{EndedBy, ResourceUsage};
use tokio::io::{AsyncRead, ReadBuf};

use super::Process;
use crate::{Error, Exit, Stream};

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
        /// The cause of its end, if the executor tells.
        ended_by: Option<EndedBy>,
        /// The resources that it has used, if the executor tells.
        usage: Option<ResourceUsage>,
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
        error: Error,
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
    pub exit: Option<Exit>,
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
                ended_by: exit.ended_by,
                usage: exit.usage,
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

/// A stream of the events of a process, in order. Also keeps the process alive, as a
/// [`Process`] does.
///
/// The process blocks while this stream lags more than one window behind it.
#[derive(Debug)]
pub struct Events {
    process: Process,
    reader: u64,
    /// Fetched from the log and not yet returned.
    batch: VecDeque<Event>,
    delivered: Seq,
    ended: bool,
}

impl Events {
    pub(super) fn new(process: Process, after: Seq) -> Self {
        let reader = process.handle.log.add_reader(after);
        Events {
            process,
            reader,
            batch: VecDeque::new(),
            delivered: after,
            ended: false,
        }
    }

    /// Returns the next event, or `None` after the last event. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns the number of the last event that this stream returned.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.delivered.0
    }
}

impl EventStream for Events {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        if this.batch.is_empty() {
            let log = &this.process.handle.log;
            ready!(log.poll_events(this.reader, this.delivered, &mut this.batch, cx));
        }
        let event = this.batch.pop_front();
        match &event {
            Some(Event::Output { seq, .. } | Event::Exited { seq, .. }) => {
                this.delivered = Seq(*seq);
            }
            Some(Event::Closed { seq }) => {
                this.delivered = Seq(*seq);
                this.ended = true;
            }
            Some(Event::Failed { .. }) | None => this.ended = true,
        }
        if this.ended {
            this.process.handle.log.remove_reader(this.reader);
        }
        Poll::Ready(event)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.process.handle.log.remove_reader(self.reader);
    }
}

/// Reads one output stream of a process. Ends when the process is closed. A failure of the process
/// is a read error.
#[derive(Debug)]
pub struct OutputReader {
    events: Events,
    streams: &'static [Stream],
    current: Bytes,
}

impl OutputReader {
    pub(super) fn new(events: Events, streams: &'static [Stream]) -> Self {
        OutputReader {
            events,
            streams,
            current: Bytes::new(),
        }
    }
}

impl AsyncRead for OutputReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.current.is_empty() {
            match ready!(Pin::new(&mut this.events).poll_next(cx)) {
                Some(Event::Output { stream, bytes, .. }) if this.streams.contains(&stream) => {
                    this.current = bytes;
                }
                Some(Event::Failed { error }) => {
                    return Poll::Ready(Err(error.into()));
                }
                Some(_) => {}
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = this.current.len().min(buf.remaining());
        buf.put_slice(&this.current[..count]);
        this.current.advance(count);
        Poll::Ready(Ok(()))
    }
}
