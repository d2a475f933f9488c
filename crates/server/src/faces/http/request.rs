//! The verb, and what a client says about its streams.

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
    exchanges::{StreamName, Whole},
};
use crate::{
    connection::{Caller, Reply},
    convert,
};

/// Room for what is in an answer besides the body and the headers, and for each of those.
const ANSWER_BYTES: usize = 512;

/// A request that may be made.
struct Exchange {
    caller: Caller,
    request: Request,
    manner: Manner,
    acked: bool,
    /// Held until all of it is over.
    _place: OwnedSemaphorePermit,
}

/// How the response comes.
enum Manner {
    Streamed(StreamName),
    Whole(Whole),
}

impl Manner {
    /// Cancelled when the client doesn't want it any more.
    fn unwanted(&self) -> CancellationToken {
        match self {
            Manner::Streamed(name) => name.unwanted(),
            Manner::Whole(whole) => whole.unwanted(),
        }
    }
}

/// Makes a request, beside everything else.
pub(crate) fn request(caller: Caller, params: HttpRequestParams, reply: Reply) {
    match Exchange::admit(caller, params) {
        Err(refusal) => reply.send::<()>(Err(refusal)),
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

/// The client has pieces of a body up to a number.
pub(crate) fn acknowledge(caller: &Caller, params: &HttpAckParams) {
    // It may have ended meanwhile.
    if let Some(body) = caller.exchanges.body(&params.request_id) {
        body.acknowledge(params.seq);
    }
}

/// The client wants no more of a response.
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
        let taken = || {
            let words = format!("http/request requestId {id} is in use by a stream");
            RpcError::invalid_params(words)
        };
        let manner = if streamed {
            if id.is_empty() {
                let words = "requestId must not be empty";
                return Err(RpcError::invalid_params(words));
            }
            let name = caller.exchanges.name(id.clone());
            Manner::Streamed(name.ok_or_else(taken)?)
        } else if caller.exchanges.is_streamed(&id) {
            return Err(taken());
        } else {
            Manner::Whole(caller.exchanges.whole(id))
        };
        let place = caller.exchanges.place().ok_or_else(RpcError::overloaded)?;
        Ok(Exchange {
            caller,
            request,
            manner,
            acked,
            _place: place,
        })
    }

    async fn run(self, reply: Reply) {
        let fetch = self.caller.server.fetcher().fetch(self.request);
        let unwanted = self.manner.unwanted();
        let response = tokio::select! {
            response = fetch => response.map_err(|error| convert::fetch_error(&error)),
            () = unwanted.cancelled() => Err(convert::cancelled_request()),
        };
        match (response, self.manner) {
            (Err(refusal), manner) => {
                // Before the client can have the answer: it may use the name again at once.
                drop(manner);
                reply.send::<()>(Err(refusal));
            }
            (Ok(response), Manner::Whole(_known)) => {
                let answering = gather(&self.caller, response);
                tokio::select! {
                    gathered = answering => answer_whole(gathered, reply),
                    () = unwanted.cancelled() => {
                        reply.send::<()>(Err(convert::cancelled_request()));
                    }
                }
            }
            (Ok(response), Manner::Streamed(name)) => {
                stream(&self.caller, response, name, self.acked, reply).await;
            }
        }
    }
}

/// A whole response, and room for it on its way to the client.
struct Gathered {
    result: HttpRequestResult<Bytes>,
    bytes: usize,
    reservation: Reservation,
    /// The place of a large body, held until the answer is on its way.
    _large: Option<OwnedSemaphorePermit>,
}

async fn gather(caller: &Caller, mut response: Response) -> Result<Gathered, RpcError> {
    let settings = caller.server.settings();
    let gathered = response.body.collect(
        settings.http_body_bytes,
        settings.http_small_body_bytes,
        caller.exchanges.large(),
    );
    let gathered = gathered.await;
    let (body, large) = gathered.map_err(|error| convert::fetch_error(&error))?;
    let headers = response.headers.iter();
    let headers: usize = headers
        .map(|(name, value)| name.len() + value.len() + ANSWER_BYTES)
        .sum();
    // What was fetched must not pile up in front of a client that doesn't read.
    let bytes = base64::encoded_len(body.len()) + headers + ANSWER_BYTES;
    let reservation = caller.outbox.reserve(bytes).await;
    Ok(Gathered {
        result: result_of(response.status, response.headers, body),
        bytes,
        reservation,
        _large: large,
    })
}

/// Answers with the whole body.
fn answer_whole(gathered: Result<Gathered, RpcError>, reply: Reply) {
    match gathered {
        Ok(gathered) => reply.send_large(gathered.result, gathered.bytes, gathered.reservation),
        Err(refusal) => reply.send::<()>(Err(refusal)),
    }
}

/// Answers with the head, and sends the body behind it.
async fn stream(caller: &Caller, response: Response, name: StreamName, acked: bool, reply: Reply) {
    let id = name.as_str().to_owned();
    let unwanted = name.unwanted();
    let window = caller.server.settings().http_window_bytes;
    let feed = BodyFeed::new(&caller.outbox, name, window, acked);
    caller.exchanges.streams(&id, &feed);
    let Response {
        status,
        headers,
        body,
    } = response;
    reply.send(Ok(result_of(status, headers, Bytes::new())));
    carry(&feed, body, unwanted.cancelled()).await;
}

/// Stays until the last piece is on its way: until then, nobody else holds the feed for good.
async fn carry(feed: &Arc<BodyFeed>, body: Body, unwanted: impl Future<Output = ()>) {
    let to_the_end = async {
        feed.pump(body).await;
        feed.wait_until_over().await;
    };
    tokio::select! {
        () = to_the_end => {}
        () = unwanted => {
            feed.give_up(convert::CANCELLED.to_owned());
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
