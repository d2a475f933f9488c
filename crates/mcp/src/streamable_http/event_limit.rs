//! Bounds the size of server-sent events.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use outpost_client::HttpBody;

/// Forwards the bytes of an event stream, and fails on an oversized event. The SSE parser
/// buffers an event without a limit.
pub(super) struct BoundedEvents {
    body: HttpBody,
    meter: EventMeter,
}

/// Errors of an event stream.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventsError {
    #[error("a server-sent event exceeds {limit} bytes")]
    TooLong { limit: usize },
    #[error(transparent)]
    Body(#[from] outpost_client::Error),
}

impl BoundedEvents {
    pub(super) fn new(body: HttpBody, limit: usize) -> Self {
        BoundedEvents {
            body,
            meter: EventMeter::new(limit),
        }
    }
}

impl Stream for BoundedEvents {
    type Item = Result<Bytes, EventsError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(chunk) = ready!(Pin::new(&mut this.body).poll_next(cx)) else {
            return Poll::Ready(None);
        };
        let chunk = chunk?;
        Poll::Ready(Some(if this.meter.fits(&chunk) {
            Ok(chunk)
        } else {
            let limit = this.meter.limit;
            Err(EventsError::TooLong { limit })
        }))
    }
}

/// Measures events. An event ends with an empty line.
struct EventMeter {
    limit: usize,
    event: usize,
    line: usize,
    /// The last byte was a CR, which may be followed by an LF of the same line end.
    after_cr: bool,
}

impl EventMeter {
    fn new(limit: usize) -> Self {
        EventMeter {
            limit,
            event: 0,
            line: 0,
            after_cr: false,
        }
    }

    /// Adds received bytes. Returns false if an event exceeds the limit.
    fn fits(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            let completes_crlf = self.after_cr && *byte == b'\n';
            self.after_cr = *byte == b'\r';
            match byte {
                _ if completes_crlf => {}
                b'\n' | b'\r' if self.line == 0 => self.event = 0,
                b'\n' | b'\r' => self.line = 0,
                _ => {
                    self.line += 1;
                    self.event += 1;
                }
            }
            if self.event > self.limit {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(limit: usize, chunks: &[&str]) -> bool {
        let mut meter = EventMeter::new(limit);
        chunks.iter().all(|chunk| meter.fits(chunk.as_bytes()))
    }

    #[test]
    fn measures_events_across_chunks() {
        assert!(fits(10, &["data: abcd", "\n\ndata: efgh\n\n"]));
        assert!(!fits(10, &["data: ab", "cde\n\n"]));
        assert!(!fits(10, &["data: a\n", "data: b\n\n"]));
        assert!(!fits(10, &["data: a\r\n", "data: b\r\n\r\n"]));
        assert!(fits(10, &["data: abc\r\n\r", "\ndata: abc\r\n\r\n"]));
    }
}
