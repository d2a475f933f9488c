//! A stream of events whose events are bounded.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use outpost_client::HttpBody;

/// Passes the bytes of a body on, as long as no event in it is too long: the
/// parser behind this keeps an event until its end has come.
pub(super) struct Events {
    body: HttpBody,
    gauge: Gauge,
}

/// Why a stream of events has ended before its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventsError {
    #[error("an event is longer than {most} bytes")]
    TooLong { most: usize },
    #[error(transparent)]
    Body(#[from] outpost_client::Error),
}

impl Events {
    pub(super) fn new(body: HttpBody, most: usize) -> Self {
        Events {
            body,
            gauge: Gauge {
                most,
                event: 0,
                line: 0,
                after_cr: false,
            },
        }
    }
}

impl Stream for Events {
    type Item = Result<Bytes, EventsError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(piece) = ready!(Pin::new(&mut this.body).poll_next(cx)) else {
            return Poll::Ready(None);
        };
        let piece = piece?;
        Poll::Ready(Some(match this.gauge.fits(&piece) {
            true => Ok(piece),
            false => Err(EventsError::TooLong {
                most: this.gauge.most,
            }),
        }))
    }
}

/// Measures events, which end with an empty line.
struct Gauge {
    most: usize,
    event: usize,
    line: usize,
    /// The first half of a line's end, perhaps.
    after_cr: bool,
}

impl Gauge {
    fn fits(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            let second_half = self.after_cr && *byte == b'\n';
            self.after_cr = *byte == b'\r';
            match byte {
                _ if second_half => {}
                b'\n' | b'\r' if self.line == 0 => self.event = 0,
                b'\n' | b'\r' => self.line = 0,
                _ => {
                    self.line += 1;
                    self.event += 1;
                }
            }
            if self.event > self.most {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(most: usize, pieces: &[&str]) -> bool {
        let mut gauge = Gauge {
            most,
            event: 0,
            line: 0,
            after_cr: false,
        };
        pieces.iter().all(|piece| gauge.fits(piece.as_bytes()))
    }

    #[test]
    fn events_are_measured_however_they_are_cut() {
        assert!(fits(10, &["data: abcd", "\n\ndata: efgh\n\n"]));
        assert!(!fits(10, &["data: ab", "cde\n\n"]));
        assert!(!fits(10, &["data: a\n", "data: b\n\n"]));
        assert!(!fits(10, &["data: a\r\n", "data: b\r\n\r\n"]));
        assert!(fits(10, &["data: abc\r\n\r", "\ndata: abc\r\n\r\n"]));
    }
}
