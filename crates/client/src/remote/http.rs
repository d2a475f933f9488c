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

use super::{connection::Connection, http_bodies::ReceivedBody, session::SessionGuard};
use crate::{Error, HttpBody, HttpRequest, HttpResponse, http::pairs};

/// Acknowledge when this many bytes were read, so that the server sends more.
const ACK_BYTES: usize = 64 * 1024;

/// Makes a request once. If the connection is lost before the response, it is unknown whether the
/// request was made.
pub(super) async fn request(
    guard: &Arc<SessionGuard>,
    request: HttpRequest,
) -> Result<HttpResponse, Error> {
    let session = &guard.session;
    let mut params = request.into_params();
    let connection = session.connection().await?;
    params.request_id = session.generate_id("");
    // From here on, dropping the future cancels the request.
    let exchange = Exchange {
        request_id: params.request_id.clone(),
        has_flow_control: session.capabilities().acked,
        is_ended: false,
        connection,
        _guard: Arc::clone(guard),
    };
    if params.stream_response {
        streamed(exchange, params, session.options.limits.push_window_bytes).await
    } else {
        buffered(exchange, &params).await
    }
}

/// Returns the response once its body is complete.
async fn buffered(
    mut exchange: Exchange,
    params: &HttpRequestParams,
) -> Result<HttpResponse, Error> {
    let response = exchange.connection.call(Method::HttpRequest, params).await;
    exchange.is_ended = true;
    let result: HttpRequestResult = response?;
    let body = HttpBody::whole(result.body_base64.into());
    let headers = pairs(result.headers);
    Ok(HttpResponse::new(result.status, headers, body))
}

/// Returns the head of the response. Up to `max_bytes` of the body may wait for the reader.
async fn streamed(
    exchange: Exchange,
    mut params: HttpRequestParams,
    max_bytes: usize,
) -> Result<HttpResponse, Error> {
    params.acked = exchange.has_flow_control;
    let mut body = RemoteBody {
        received: exchange
            .connection
            .bodies
            .register(&exchange.request_id, max_bytes),
        unacked: 0,
        exchange,
    };
    let connection = Arc::clone(&body.exchange.connection);
    let response = connection.call(Method::HttpRequest, &params).await;
    body.exchange.is_ended = response.is_err();
    let result: HttpRequestResult = response?;
    let headers = pairs(result.headers);
    let body = HttpBody::new(body);
    Ok(HttpResponse::new(result.status, headers, body))
}

/// A request on a connection. Dropping it cancels the request unless it has ended.
struct Exchange {
    request_id: String,
    /// Whether the server supports acknowledgements and cancellation.
    has_flow_control: bool,
    is_ended: bool,
    connection: Arc<Connection>,
    /// Keeps the session open.
    _guard: Arc<SessionGuard>,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.has_flow_control && !self.is_ended {
            let request_id = self.request_id.clone();
            let params = HttpCancelParams { request_id };
            self.connection.notify(HTTP_CANCEL, &params);
        }
    }
}

/// A body that a connection receives.
struct RemoteBody {
    received: Arc<ReceivedBody>,
    /// Bytes that were read and not acknowledged.
    unacked: usize,
    exchange: Exchange,
}

impl Stream for RemoteBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = ready!(this.received.poll(cx));
        Poll::Ready(next.map(|chunk| {
            let (seq, bytes) = chunk?;
            this.unacked += bytes.len();
            if this.exchange.has_flow_control && this.unacked >= ACK_BYTES {
                this.unacked = 0;
                let request_id = this.exchange.request_id.clone();
                let params = HttpAckParams { request_id, seq };
                this.exchange.connection.notify(HTTP_ACK, &params);
            }
            Ok(bytes)
        }))
    }
}

impl Drop for RemoteBody {
    fn drop(&mut self) {
        let exchange = &mut self.exchange;
        exchange.connection.bodies.remove(&exchange.request_id);
        exchange.is_ended |= self.received.is_ended();
    }
}
