//! HTTP response bodies that a connection receives.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use outpost_protocol::HttpBodyDelta;
use parking_lot::Mutex;

use crate::Error;

/// The response bodies of one connection, by request id. They fail with it.
#[derive(Default)]
pub(super) struct HttpBodies {
    bodies: Mutex<HashMap<String, Arc<ReceivedBody>>>,
}

impl HttpBodies {
    /// Registers a body, of which up to `max_bytes` may wait for the reader.
    pub(super) fn register(&self, request_id: &str, max_bytes: usize) -> Arc<ReceivedBody> {
        let body = Arc::new(ReceivedBody {
            state: Mutex::new(BodyState {
                buffer: BodyBuffer::new(max_bytes),
                waker: None,
            }),
        });
        let request_id = request_id.to_owned();
        self.bodies.lock().insert(request_id, Arc::clone(&body));
        body
    }

    pub(super) fn remove(&self, request_id: &str) {
        self.bodies.lock().remove(request_id);
    }

    /// Handles a chunk. Ignored if its body is not registered.
    pub(super) fn receive(&self, delta: HttpBodyDelta<'_>) {
        let body = self.bodies.lock().get(&*delta.request_id).cloned();
        if let Some(body) = body {
            body.update(|buffer| buffer.push(delta));
        }
    }

    /// Fails all bodies: a body can't continue on another connection.
    pub(super) fn fail(&self, error: &Error) {
        for (_, body) in self.bodies.lock().drain() {
            body.update(|buffer| buffer.fail(error.clone()));
        }
    }
}

/// One body, between the connection's receiver and the body's reader.
pub(super) struct ReceivedBody {
    state: Mutex<BodyState>,
}

struct BodyState {
    buffer: BodyBuffer,
    waker: Option<Waker>,
}

impl ReceivedBody {
    /// Returns the next chunk with its number, or `None` at the end.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<(u64, Bytes), Error>>> {
        let mut state = self.state.lock();
        let next = state.buffer.pop();
        if next.is_pending() {
            state.waker = Some(cx.waker().clone());
        }
        next
    }

    /// Whether no more chunks will arrive.
    pub(super) fn is_ended(&self) -> bool {
        self.state.lock().buffer.end.is_some()
    }

    fn update(&self, update: impl FnOnce(&mut BodyBuffer)) {
        let waker = {
            let mut state = self.state.lock();
            update(&mut state.buffer);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Chunks that were received and not read. Pure.
struct BodyBuffer {
    chunks: VecDeque<(u64, Bytes)>,
    bytes: usize,
    max_bytes: usize,
    last_seq: u64,
    end: Option<Result<(), Error>>,
}

impl BodyBuffer {
    fn new(max_bytes: usize) -> Self {
        BodyBuffer {
            chunks: VecDeque::new(),
            bytes: 0,
            max_bytes,
            last_seq: 0,
            end: None,
        }
    }

    fn push(&mut self, delta: HttpBodyDelta<'_>) {
        if self.end.is_some() {
            return;
        }
        if delta.seq != self.last_seq + 1 {
            let (expected, seq) = (self.last_seq + 1, delta.seq);
            return self.fail(Error::BodyGap { expected, seq });
        }
        self.last_seq = delta.seq;
        let bytes = Bytes::from(delta.delta_base64.into_owned());
        self.bytes += bytes.len();
        if self.bytes > self.max_bytes {
            // The server ignores backpressure. Buffered chunks can still be read.
            return self.fail(Error::BodyTooLarge {
                most: self.max_bytes,
            });
        }
        if !bytes.is_empty() {
            self.chunks.push_back((delta.seq, bytes));
        }
        match delta.error {
            Some(message) => self.fail(Error::BodyFailed { message }),
            None if delta.done => self.end = Some(Ok(())),
            None => {}
        }
    }

    fn fail(&mut self, error: Error) {
        self.end.get_or_insert(Err(error));
    }

    fn pop(&mut self) -> Poll<Option<Result<(u64, Bytes), Error>>> {
        if let Some((seq, bytes)) = self.chunks.pop_front() {
            self.bytes -= bytes.len();
            return Poll::Ready(Some(Ok((seq, bytes))));
        }
        match &mut self.end {
            None => Poll::Pending,
            Some(end) => match std::mem::replace(end, Ok(())) {
                Ok(()) => Poll::Ready(None),
                Err(error) => Poll::Ready(Some(Err(error))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(seq: u64, bytes: &'static [u8]) -> HttpBodyDelta<'static> {
        HttpBodyDelta {
            request_id: "r".into(),
            seq,
            delta_base64: bytes.into(),
            done: false,
            error: None,
        }
    }

    /// Pops everything.
    fn drain(buffer: &mut BodyBuffer) -> Vec<String> {
        let mut popped = Vec::new();
        loop {
            match buffer.pop() {
                Poll::Pending => return popped,
                Poll::Ready(None) => {
                    popped.push("end".to_owned());
                    return popped;
                }
                Poll::Ready(Some(Ok((seq, bytes)))) => popped.push(format!("{seq} {bytes:?}")),
                Poll::Ready(Some(Err(error))) => popped.push(error.to_string()),
            }
        }
    }

    #[test]
    fn chunks_precede_the_end() {
        let mut buffer = BodyBuffer::new(10);
        buffer.push(delta(1, b"a"));
        buffer.push(delta(2, b"bc"));
        assert_eq!(drain(&mut buffer), [r#"1 b"a""#, r#"2 b"bc""#]);
        buffer.push(HttpBodyDelta {
            done: true,
            ..delta(3, b"")
        });
        assert_eq!(drain(&mut buffer), ["end"]);
        assert_eq!(drain(&mut buffer), ["end"]);
    }

    #[test]
    fn failure_follows_buffered_chunks() {
        let mut buffer = BodyBuffer::new(10);
        buffer.push(delta(1, b"a"));
        buffer.push(HttpBodyDelta {
            done: true,
            error: Some("it broke".to_owned()),
            ..delta(2, b"")
        });
        let text = "the response is incomplete: it broke";
        assert_eq!(drain(&mut buffer), [r#"1 b"a""#, text, "end"]);
    }

    #[test]
    fn missing_chunk_fails_the_body() {
        let mut buffer = BodyBuffer::new(10);
        buffer.push(delta(1, b"a"));
        buffer.push(delta(3, b"c"));
        buffer.push(delta(2, b"b"));
        let text = "the response is incomplete: piece 3 came where 2 was expected";
        assert_eq!(drain(&mut buffer), [r#"1 b"a""#, text, "end"]);
    }

    #[test]
    fn buffered_bytes_are_bounded() {
        let mut buffer = BodyBuffer::new(3);
        buffer.push(delta(1, b"abc"));
        buffer.push(delta(2, b"d"));
        buffer.push(delta(3, b"e"));
        let text = "the body is larger than 3 bytes";
        assert_eq!(drain(&mut buffer), [r#"1 b"abc""#, text, "end"]);
    }
}
