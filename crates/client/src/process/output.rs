//! One stream of a process, to be read from.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use futures_core::Stream;
use outpost_protocol::StreamName;
use tokio::io::{AsyncRead, ReadBuf};

use super::Events;
use crate::Event;

/// The bytes of one stream of a process. Its end is the close of the process; a
/// failure is an error.
#[derive(Debug)]
pub struct OutputReader {
    events: Events,
    streams: &'static [StreamName],
    current: Bytes,
}

impl OutputReader {
    pub(super) fn new(events: Events, streams: &'static [StreamName]) -> Self {
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
                Some(Event::Failed { message }) => {
                    return Poll::Ready(Err(io::Error::other(message)));
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
