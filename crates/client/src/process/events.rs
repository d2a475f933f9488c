//! The output of a process: all events as a stream, or the bytes of one output stream.

use std::{
    collections::VecDeque,
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use futures_util::Stream as EventStream;
use outpost_journal::Seq;
use tokio::io::{AsyncRead, ReadBuf};

use super::Process;
use crate::{Event, Stream};

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

    /// Returns the next event, or `None` after the last one. Cancel safe.
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
