//! HTTP requests that the server makes.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use outpost_protocol::{
    HTTP_ACK, HTTP_CANCEL, HttpAckParams, HttpCancelParams, HttpRequestParams, HttpRequestResult,
    Method,
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
    params.request_id = core.next_name();
    // From here on, whoever stops waiting ends it.
    let exchange = Exchange {
        name: params.request_id.clone(),
        heeds_us: core.capabilities().acked,
        is_over: false,
        line,
        _guard: Arc::clone(guard),
    };
    match params.stream_response {
        true => streamed(exchange, params, core.options.limits.push_window_bytes).await,
        false => whole(exchange, &params).await,
    }
}

/// The response, once all of it is there.
async fn whole(mut exchange: Exchange, params: &HttpRequestParams) -> Result<HttpResponse, Error> {
    let answer = exchange.line.call(Method::HttpRequest, params).await;
    exchange.is_over = true;
    let result: HttpRequestResult = answer?;
    let body = HttpBody::whole(result.body_base64.into());
    let headers = pairs(result.headers);
    Ok(HttpResponse::new(result.status, headers, body))
}

/// The head of the response; of the body behind it, so many bytes may wait for their reader.
async fn streamed(
    exchange: Exchange,
    mut params: HttpRequestParams,
    most: usize,
) -> Result<HttpResponse, Error> {
    params.acked = exchange.heeds_us;
    let mut body = RemoteBody {
        arriving: exchange.line.bodies.expect(&exchange.name, most),
        unacked: 0,
        exchange,
    };
    let answer = body.exchange.line.call(Method::HttpRequest, &params).await;
    body.exchange.is_over = answer.is_err();
    let result: HttpRequestResult = answer?;
    let headers = pairs(result.headers);
    let body = HttpBody::new(body);
    Ok(HttpResponse::new(result.status, headers, body))
}

/// A request on a connection. Unless it is over, it is cancelled when this is dropped.
struct Exchange {
    name: String,
    /// The server waits for us, and ends what we don't want.
    heeds_us: bool,
    is_over: bool,
    line: Arc<Line>,
    /// The connection is there as long as the request is.
    _guard: Arc<Guard>,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.heeds_us && !self.is_over {
            let request_id = self.name.clone();
            let params = HttpCancelParams { request_id };
            self.line.notify(HTTP_CANCEL, &params);
        }
    }
}

/// A body that comes over a connection. Once it is dropped, nobody listens to it.
struct RemoteBody {
    arriving: Arc<Arriving>,
    /// What was taken and not acknowledged.
    unacked: usize,
    exchange: Exchange,
}

impl Stream for RemoteBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = ready!(this.arriving.poll(cx));
        Poll::Ready(next.map(|piece| {
            let (seq, bytes) = piece?;
            this.unacked += bytes.len();
            if this.exchange.heeds_us && this.unacked >= ACK_BYTES {
                this.unacked = 0;
                let request_id = this.exchange.name.clone();
                let params = HttpAckParams { request_id, seq };
                this.exchange.line.notify(HTTP_ACK, &params);
            }
            Ok(bytes)
        }))
    }
}

impl Drop for RemoteBody {
    fn drop(&mut self) {
        self.exchange.line.bodies.forget(&self.exchange.name);
        self.exchange.is_over |= self.arriving.is_over();
    }
}
