//! HTTP requests that the server makes, and the response bodies that a connection receives.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use futures_util::Stream;
use outpost_protocol::{
    HTTP_ACK, HTTP_CANCEL, HttpAckParams, HttpBodyDelta, HttpCancelParams, HttpRequestResult,
    Method,
};
use parking_lot::Mutex;

use super::{connection::Connection, session::SessionGuard};
use crate::{Error, HttpBody, HttpRequest, HttpResponse};

/// Acknowledge when this many bytes were read, so that the server sends more.
const ACK_BYTES: usize = 64 * 1024;

/// Makes a request once. If the connection is lost before the response, it is unknown whether the
/// request was made.
pub(super) async fn request(
    guard: &Arc<SessionGuard>,
    request: HttpRequest,
) -> Result<HttpResponse, Error> {
    let session = &guard.session;
    let mut params = request.params;
    let streamed = params.stream_response;
    let connection = session.connection().await?;
    params.request_id = session.generate_id("");
    // From here on, dropping the future cancels the request.
    let mut body = RemoteBody {
        request_id: params.request_id.clone(),
        has_flow_control: session.capabilities().acked,
        is_ended: false,
        unacked: 0,
        connection: Arc::clone(&connection),
        _guard: Arc::clone(guard),
    };
    if streamed {
        params.acked = body.has_flow_control;
        let max_bytes = session.options.limits.push_window_bytes;
        connection.bodies.register(&params.request_id, max_bytes);
    }
    let response = connection.call(Method::HttpRequest, &params).await;
    body.is_ended = !streamed || response.is_err();
    let result: HttpRequestResult = response?;
    let body = if streamed {
        HttpBody::new(body)
    } else {
        HttpBody::whole(result.body_base64.into())
    };
    let headers = result.headers.into_iter();
    let headers = headers.map(|header| (header.name, header.value)).collect();
    Ok(HttpResponse::new(result.status, headers, body))
}

/// A request on a connection, and the body of its response. Dropping it cancels the request unless
/// it has ended.
struct RemoteBody {
    request_id: String,
    /// Whether the server supports acknowledgements and cancellation.
    has_flow_control: bool,
    is_ended: bool,
    /// Bytes that were read and not acknowledged.
    unacked: usize,
    connection: Arc<Connection>,
    /// Keeps the session open.
    _guard: Arc<SessionGuard>,
}

impl Stream for RemoteBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = ready!(this.connection.bodies.poll(&this.request_id, cx));
        Poll::Ready(next.map(|chunk| {
            let (seq, bytes) = chunk?;
            this.unacked += bytes.len();
            if this.has_flow_control && this.unacked >= ACK_BYTES {
                this.unacked = 0;
                let request_id = this.request_id.clone();
                let params = HttpAckParams { request_id, seq };
                this.connection.notify(HTTP_ACK, &params);
            }
            Ok(bytes)
        }))
    }
}

impl Drop for RemoteBody {
    fn drop(&mut self) {
        let received = self.connection.bodies.remove(&self.request_id);
        let is_received = received.is_some_and(|body| body.end.is_some());
        if self.has_flow_control && !self.is_ended && !is_received {
            let request_id = std::mem::take(&mut self.request_id);
            self.connection
                .notify(HTTP_CANCEL, &HttpCancelParams { request_id });
        }
    }
}

/// The response bodies of one connection, by request id. They fail with it.
#[derive(Default)]
pub(super) struct HttpBodies {
    bodies: Mutex<HashMap<String, BodyBuffer>>,
}

impl HttpBodies {
    /// Registers a body, of which up to `max_bytes` may wait for the reader.
    fn register(&self, request_id: &str, max_bytes: usize) {
        let body = BodyBuffer::new(max_bytes);
        self.bodies.lock().insert(request_id.to_owned(), body);
    }

    fn remove(&self, request_id: &str) -> Option<BodyBuffer> {
        self.bodies.lock().remove(request_id)
    }

    /// Returns the next chunk of a body with its number, or `None` at the end. A body that is not
    /// registered fails: without its end, it can't be known to be complete.
    fn poll(
        &self,
        request_id: &str,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(u64, Bytes), Error>>> {
        match self.bodies.lock().get_mut(request_id) {
            Some(body) => body.poll(cx),
            None => {
                let message = "it is not being received".to_owned();
                Poll::Ready(Some(Err(Error::BodyFailed { message })))
            }
        }
    }

    /// Handles a chunk. Ignored if its body is not registered.
    pub(super) fn receive(&self, delta: HttpBodyDelta<'_>) {
        let mut bodies = self.bodies.lock();
        let waker = bodies.get_mut(&*delta.request_id).and_then(|body| {
            body.push(delta);
            body.waker.take()
        });
        drop(bodies);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Fails all bodies: a body can't continue on another connection.
    pub(super) fn fail(&self, error: &Error) {
        let mut bodies = self.bodies.lock();
        let wakers = bodies.values_mut().filter_map(|body| {
            body.fail(error.clone());
            body.waker.take()
        });
        let wakers: Vec<_> = wakers.collect();
        drop(bodies);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Chunks of a body that were received and not read.
struct BodyBuffer {
    chunks: VecDeque<(u64, Bytes)>,
    bytes: usize,
    max_bytes: usize,
    last_seq: u64,
    end: Option<Result<(), Error>>,
    /// The reader, if it waits.
    waker: Option<Waker>,
}

impl BodyBuffer {
    fn new(max_bytes: usize) -> Self {
        BodyBuffer {
            chunks: VecDeque::new(),
            bytes: 0,
            max_bytes,
            last_seq: 0,
            end: None,
            waker: None,
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

    fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<(u64, Bytes), Error>>> {
        let next = self.pop();
        if next.is_pending() {
            self.waker = Some(cx.waker().clone());
        }
        next
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
    fn unknown_body_fails() {
        let mut cx = Context::from_waker(Waker::noop());
        let polled = HttpBodies::default().poll("r", &mut cx);
        assert!(matches!(polled, Poll::Ready(Some(Err(_)))), "{polled:?}");
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
        let text = "the response is incomplete: chunk 3 received, expected 2";
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
