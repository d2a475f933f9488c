//! One output stream of a process as an [`AsyncRead`].

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use futures_core::Stream as _;
use outpost_protocol::Stream;
use tokio::io::{AsyncRead, ReadBuf};

use super::Events;
use crate::Event;

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
