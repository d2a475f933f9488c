//! HTTP requests that the server makes.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use outpost_protocol::{
    HTTP_ACK, HTTP_CANCEL, HttpAckParams, HttpCancelParams, HttpRequestResult, Method,
};

use super::{bodies::Arriving, line::Line, place::Guard};
use crate::{Error, HttpBody, HttpRequest, HttpResponse, http::pairs};

/// Whoever has taken so much says so, that there may be more.
const ACK_BYTES: usize = 64 * 1024;

/// Makes a request once: if the connection is lost before the answer, nobody knows whether it was
/// made.
pub(super) async fn request(
    guard: &Arc<Guard>,
    request: HttpRequest,
) -> Result<HttpResponse, Error> {
    let core = &guard.core;
    let mut params = request.into_params();
    let line = core.line().await?;
    if !params.stream_response {
        let result: HttpRequestResult = line.call(Method::HttpRequest, &params).await?;
        let body = HttpBody::whole(result.body_base64.into());
        return Ok(HttpResponse::new(
            result.status,
            pairs(result.headers),
            body,
        ));
    }
    params.request_id = core.next_name();
    params.acked = core.capabilities().acked;
    // From here on, whoever stops waiting ends it.
    let body = RemoteBody {
        arriving: line
            .bodies
            .expect(&params.request_id, core.options.limits.push_window_bytes),
        name: params.request_id.clone(),
        is_acked: params.acked,
        unacked: 0,
        line: Arc::clone(&line),
        _guard: Arc::clone(guard),
    };
    let answer = line.call(Method::HttpRequest, &params).await;
    let result: HttpRequestResult = answer.inspect_err(|_| body.arriving.give_up())?;
    let headers = pairs(result.headers);
    Ok(HttpResponse::new(
        result.status,
        headers,
        HttpBody::new(body),
    ))
}

/// A body that comes over a connection. Once it is dropped, nobody listens to it.
struct RemoteBody {
    arriving: Arc<Arriving>,
    name: String,
    /// The server waits for us, and ends what we don't want.
    is_acked: bool,
    /// What was taken and not acknowledged.
    unacked: usize,
    line: Arc<Line>,
    /// The connection is there as long as the body is.
    _guard: Arc<Guard>,
}

impl Stream for RemoteBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = ready!(this.arriving.poll(cx));
        Poll::Ready(next.map(|piece| {
            let (seq, bytes) = piece?;
            this.unacked += bytes.len();
            if this.is_acked && this.unacked >= ACK_BYTES {
                this.unacked = 0;
                let request_id = this.name.clone();
                let params = HttpAckParams { request_id, seq };
                this.line.notify(HTTP_ACK, &params);
            }
            Ok(bytes)
        }))
    }
}

impl Drop for RemoteBody {
    fn drop(&mut self) {
        self.line.bodies.forget(&self.name);
        if self.is_acked && !self.arriving.is_over() {
            let request_id = self.name.clone();
            let params = HttpCancelParams { request_id };
            self.line.notify(HTTP_CANCEL, &params);
        }
    }
}
