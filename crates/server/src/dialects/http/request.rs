//! Makes HTTP requests, and handles acknowledgements and cancellations.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use outpost_engine::ServerEnvironment;
use outpost_fetch::{Body, Redirects, Request, RequestError, Response};
use outpost_protocol::{
    HttpAckParams, HttpCancelParams, HttpHeader, HttpRequestParams, HttpRequestResult,
    RedirectPolicy, RpcError, base64,
};
use outpost_rpc::outbox::Reservation;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::{
    body::BodyFeed,
    exchanges::{BufferedRequestGuard, StreamId},
};
use crate::{
    connection::{Caller, Reply},
    convert,
};

/// The encoded size of a response without its body and headers, and of a header without its text.
const RESPONSE_BYTES: usize = 512;

/// An admitted request.
struct Exchange {
    caller: Caller,
    request: Request,
    kind: ResponseKind,
    acked: bool,
    /// Held until the response is complete.
    _permit: OwnedSemaphorePermit,
}

/// How the response is sent.
enum ResponseKind {
    Streamed(StreamId),
    /// In one message.
    Buffered(BufferedRequestGuard),
}

impl ResponseKind {
    /// Cancelled by the client.
    fn cancelled(&self) -> CancellationToken {
        match self {
            ResponseKind::Streamed(id) => id.cancelled(),
            ResponseKind::Buffered(request) => request.cancelled(),
        }
    }
}

/// Makes a request in a task of its own.
pub(crate) fn request(caller: Caller, params: HttpRequestParams, reply: Reply) {
    match Exchange::admit(caller, params) {
        Err(error) => reply.send::<()>(Err(error)),
        Ok(exchange) => {
            let gone = exchange.caller.gone.clone();
            let tasks = exchange.caller.server.tasks().clone();
            tasks.spawn(async move {
                tokio::select! {
                    () = exchange.run(reply) => {}
                    () = gone.cancelled() => {}
                }
            });
        }
    }
}

/// Handles the acknowledgement of pieces of a body.
pub(crate) fn acknowledge(caller: &Caller, params: &HttpAckParams) {
    // The stream may have ended meanwhile.
    if let Some(body) = caller.exchanges.body(&params.request_id) {
        body.acknowledge(params.seq);
    }
}

/// Handles the cancellation of a request.
pub(crate) fn cancel(caller: &Caller, params: &HttpCancelParams) {
    caller.exchanges.cancel(&params.request_id);
}

impl Exchange {
    fn admit(caller: Caller, params: HttpRequestParams) -> Result<Self, RpcError> {
        convert::check_name("requestId", &params.request_id)?;
        let (id, streamed, acked) = (
            params.request_id.clone(),
            params.stream_response,
            params.acked,
        );
        let request = request_of(params, &caller.server.host().environment)
            .map_err(|error| convert::request_error(&error))?;
        let in_use = || {
            let message = format!("http/request requestId {id} is in use by a stream");
            RpcError::invalid_params(message)
        };
        let kind = if streamed {
            if id.is_empty() {
                let message = "requestId must not be empty";
                return Err(RpcError::invalid_params(message));
            }
            let stream = caller.exchanges.register_stream(id.clone());
            ResponseKind::Streamed(stream.ok_or_else(in_use)?)
        } else if caller.exchanges.is_streamed(&id) {
            return Err(in_use());
        } else {
            ResponseKind::Buffered(caller.exchanges.register_buffered(id))
        };
        let permit = caller.exchanges.try_permit();
        let permit = permit.ok_or_else(RpcError::overloaded)?;
        Ok(Exchange {
            caller,
            request,
            kind,
            acked,
            _permit: permit,
        })
    }

    async fn run(self, reply: Reply) {
        let fetch = self.caller.server.fetcher().fetch(self.request);
        let cancelled = self.kind.cancelled();
        let response = tokio::select! {
            response = fetch => response.map_err(|error| convert::fetch_error(&error)),
            () = cancelled.cancelled() => Err(convert::cancelled_request()),
        };
        match (response, self.kind) {
            (Err(error), kind) => {
                // Release the id before the response is sent: the client may reuse it at once.
                drop(kind);
                reply.send::<()>(Err(error));
            }
            (Ok(response), ResponseKind::Buffered(_registered)) => {
                let collecting = collect(&self.caller, response);
                tokio::select! {
                    collected = collecting => send_collected(collected, reply),
                    () = cancelled.cancelled() => {
                        reply.send::<()>(Err(convert::cancelled_request()));
                    }
                }
            }
            (Ok(response), ResponseKind::Streamed(id)) => {
                stream(&self.caller, response, id, self.acked, reply).await;
            }
        }
    }
}

/// A complete response with its reservation in the outbox.
struct Collected {
    result: HttpRequestResult<Bytes>,
    bytes: usize,
    reservation: Reservation,
    /// The permit of a large body, held until the response is queued.
    _large: Option<OwnedSemaphorePermit>,
}

async fn collect(caller: &Caller, mut response: Response) -> Result<Collected, RpcError> {
    let settings = caller.server.settings();
    let collected = response.body.collect(
        settings.http_body_bytes,
        settings.http_small_body_bytes,
        caller.exchanges.large_permit(),
    );
    let (body, large) = collected
        .await
        .map_err(|error| convert::fetch_error(&error))?;
    let headers = response.headers.iter();
    let headers: usize = headers
        .map(|(name, value)| name.len() + value.len() + RESPONSE_BYTES)
        .sum();
    // Responses must not pile up in front of a client that does not read.
    let bytes = base64::encoded_len(body.len()) + headers + RESPONSE_BYTES;
    let reservation = caller.outbox.reserve(bytes).await;
    Ok(Collected {
        result: result_of(response.status, response.headers, body),
        bytes,
        reservation,
        _large: large,
    })
}

/// Responds with the head and the body in one message.
fn send_collected(collected: Result<Collected, RpcError>, reply: Reply) {
    match collected {
        Ok(collected) => reply.send_large(collected.result, collected.bytes, collected.reservation),
        Err(error) => reply.send::<()>(Err(error)),
    }
}

/// Responds with the head, and streams the body afterwards.
async fn stream(
    caller: &Caller,
    response: Response,
    stream_id: StreamId,
    acked: bool,
    reply: Reply,
) {
    let id = stream_id.as_str().to_owned();
    let cancelled = stream_id.cancelled();
    let window = caller.server.settings().http_window_bytes;
    let feed = BodyFeed::new(&caller.outbox, stream_id, window, acked);
    caller.exchanges.set_body(&id, &feed);
    let Response {
        status,
        headers,
        body,
    } = response;
    reply.send(Ok(result_of(status, headers, Bytes::new())));
    forward(&feed, body, cancelled.cancelled()).await;
}

/// Forwards the body. Returns when the last piece is sent: until then this task keeps the feed alive.
async fn forward(feed: &Arc<BodyFeed>, body: Body, cancelled: impl Future<Output = ()>) {
    let forwarded = async {
        feed.forward(body).await;
        feed.wait_until_over().await;
    };
    tokio::select! {
        () = forwarded => {}
        () = cancelled => {
            feed.abort(convert::CANCELLED.to_owned());
            feed.wait_until_over().await;
        }
    }
}

fn request_of(
    params: HttpRequestParams,
    environment: &ServerEnvironment,
) -> Result<Request, RequestError> {
    let mut request = Request::new(&params.method, &params.url)?;
    for header in &params.headers {
        request = match &header.value_env_var {
            None => request.header(&header.name, &header.value)?,
            Some(variable) => {
                let lookup = |name: &str| environment.get(name).map(Into::into);
                request.header_from_environment(&header.name, &header.value, variable, lookup)?
            }
        };
    }
    let body = params.body_base64.map(|body| Bytes::from(body.0));
    let redirects = match params.redirect_policy {
        RedirectPolicy::Follow => Redirects::Follow,
        RedirectPolicy::Stop => Redirects::Stop,
    };
    let request = request.body(body.unwrap_or_default())?;
    Ok(request
        .timeout(params.timeout_ms.map(Duration::from_millis))
        .redirects(redirects))
}

fn result_of(status: u16, headers: Vec<(String, String)>, body: Bytes) -> HttpRequestResult<Bytes> {
    let headers = headers.into_iter();
    HttpRequestResult {
        status,
        headers: headers
            .map(|(name, value)| HttpHeader { name, value })
            .collect(),
        body_base64: body,
    }
}
