//! Makes HTTP requests, and keeps those in progress.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use outpost_engine::ServerEnvironment;
use outpost_fetch::{FetchError, Request, RequestError, Response};
use outpost_protocol::{
    HttpHeader, HttpRequestParams, HttpRequestResult, RedirectPolicy, RpcError, base64,
};
use outpost_rpc::{MemoryCharge, outbox::Reservation};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::{backlog::Backlog, body::BodyFeed};
use crate::{
    audit::Event,
    connection::{Connection, Reply},
    convert::{self, MAX_NAME_BYTES},
};

/// The encoded size of a response without its body and headers, and of a header without its text.
const RESPONSE_BYTES: usize = 512;
/// The memory that is taken for a body of unknown length at first.
const UNKNOWN_BODY_BYTES: usize = 64 * 1024;
/// The error text of a cancelled response.
const CANCELLED: &str = "it was cancelled";

/// The requests in progress of a connection.
pub(crate) struct Exchanges {
    /// One permit for each request.
    permits: Arc<Semaphore>,
    /// One permit for a large body that is collected in memory.
    large: Semaphore,
    requests: Arc<Mutex<Requests>>,
}

/// The requests in progress by internal number: only the ids of streams are unique.
#[derive(Default)]
struct Requests {
    last: u64,
    in_progress: HashMap<u64, RequestEntry>,
}

/// An HTTP request in progress.
struct RequestEntry {
    id: String,
    streamed: bool,
    /// Dangling until the response of a stream has arrived.
    body: Weak<BodyFeed>,
    /// Cancelled by the client.
    cancelled: CancellationToken,
}

/// A registered request. Its id is in use until this is dropped.
pub(super) struct Registration {
    number: u64,
    pub(super) id: String,
    /// Cancelled by the client.
    cancelled: CancellationToken,
    requests: Arc<Mutex<Requests>>,
    _permit: OwnedSemaphorePermit,
}

impl Exchanges {
    /// Allows `limit` requests at once.
    pub(crate) fn new(limit: usize) -> Self {
        Exchanges {
            permits: Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS))),
            large: Semaphore::new(1),
            requests: Arc::default(),
        }
    }

    /// Whether there is no request in progress.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.lock().in_progress.is_empty()
    }

    /// Handles the acknowledgement of pieces of a body.
    pub(crate) fn acknowledge(&self, id: &str, seq: u64) {
        let body = self
            .requests
            .lock()
            .stream(id)
            .and_then(|stream| stream.body.upgrade());
        // The stream may have ended meanwhile.
        if let Some(body) = body {
            body.update(|backlog| backlog.acknowledge(seq));
        }
    }

    /// Cancels the requests with this id.
    pub(crate) fn cancel(&self, id: &str) {
        for request in self.requests.lock().in_progress.values() {
            if request.id == id {
                request.cancelled.cancel();
            }
        }
    }

    fn register(&self, id: String, streamed: bool) -> Result<Registration, RpcError> {
        if streamed && id.is_empty() {
            return Err(RpcError::invalid_params("requestId must not be empty"));
        }
        let mut requests = self.requests.lock();
        if requests.stream(&id).is_some() {
            let message = format!("http/request streamResponse requestId `{id}` is already active");
            return Err(RpcError::invalid_params(message));
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| RpcError::overloaded())?;
        requests.last += 1;
        let number = requests.last;
        let cancelled = CancellationToken::new();
        let request = RequestEntry {
            id: id.clone(),
            streamed,
            body: Weak::new(),
            cancelled: cancelled.clone(),
        };
        requests.in_progress.insert(number, request);
        Ok(Registration {
            number,
            id,
            cancelled,
            requests: Arc::clone(&self.requests),
            _permit: permit,
        })
    }
}

impl Requests {
    fn stream(&mut self, id: &str) -> Option<&mut RequestEntry> {
        let mut requests = self.in_progress.values_mut();
        requests.find(|request| request.streamed && request.id == id)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.requests.lock().in_progress.remove(&self.number);
    }
}

/// Makes a request in a task of its own.
pub(crate) fn request(connection: Arc<Connection>, params: HttpRequestParams, reply: Reply) {
    let (streamed, acked) = (params.stream_response, params.acked);
    let admitted = admit(&connection, params);
    let Some(((request, registration), reply)) = reply.accept(admitted) else {
        return;
    };
    let (gone, tasks) = (connection.gone.clone(), connection.server.tasks.clone());
    let exchange = async move {
        let cancelled = registration.cancelled.clone();
        let fetch = connection.server.fetcher.fetch(request);
        let response = tokio::select! {
            response = fetch => response.map_err(convert::fetch_error),
            () = cancelled.cancelled() => Err(convert::fetch_error(CANCELLED)),
        };
        match response {
            Err(error) => {
                // Release the id before the response is sent: the client may reuse it at once.
                drop(registration);
                reply.reject(error);
            }
            Ok(response) if streamed => {
                stream(&connection, response, registration, acked, reply).await;
            }
            Ok(response) => {
                let collected = tokio::select! {
                    collected = collect(&connection, response) => collected,
                    () = cancelled.cancelled() => Err(convert::fetch_error(CANCELLED)),
                };
                if let Some((response, reply)) = reply.accept(collected) {
                    reply.send_large(response.result, response.bytes, response.reservation);
                }
            }
        }
    };
    tasks.spawn(async move { gone.run_until_cancelled(exchange).await });
}

/// Checks and registers a request.
fn admit(
    connection: &Connection,
    params: HttpRequestParams,
) -> Result<(Request, Registration), RpcError> {
    connection.check_network()?;
    convert::check_length("requestId", &params.request_id, MAX_NAME_BYTES)?;
    let (id, streamed) = (params.request_id.clone(), params.stream_response);
    let request = request_of(params, &connection.server.host.environment)
        .map_err(|error| RpcError::invalid_params(format!("http/request {error}")))?;
    let registration = connection.exchanges.register(id, streamed)?;
    let audit = &connection.audit;
    let recorded = audit.admit(None, &Event::http(request.method(), &request.host()));
    recorded.map_err(convert::not_recorded)?;
    Ok((request.observer(audit.redirect_observer()), registration))
}

/// A complete response with its reservation in the outbox.
struct CollectedResponse<'a> {
    result: HttpRequestResult<Bytes>,
    bytes: usize,
    reservation: Reservation,
    /// The memory of the body, held until the response is queued.
    _memory: MemoryCharge,
    /// The permit of a large body, held until the response is queued.
    _large: Option<SemaphorePermit<'a>>,
}

/// Collects a response with its body.
async fn collect(
    connection: &Connection,
    mut response: Response,
) -> Result<CollectedResponse<'_>, RpcError> {
    let settings = &connection.server.settings;
    let (most, few) = (settings.http_body_bytes, settings.http_small_body_bytes);
    let announced = response.body.announced_len();
    let announced = announced.map(|len| usize::try_from(len).unwrap_or(usize::MAX));
    let first = announced.unwrap_or(UNKNOWN_BODY_BYTES).min(few);
    let memory = connection.memory.charge(first).await;
    let mut memory = memory.ok_or_else(RpcError::overloaded)?;
    let space = async {
        let permit = connection.exchanges.large.acquire().await.ok()?;
        let rest = announced
            .map_or(most, |len| len.min(most))
            .saturating_sub(first);
        memory.grow(rest).await.then_some(permit)
    };
    let (body, large) =
        response
            .body
            .collect(most, few, space)
            .await
            .map_err(|error| match error {
                FetchError::NoSpace => RpcError::overloaded(),
                other => convert::fetch_error(other),
            })?;
    let headers = response.headers.iter();
    let headers: usize = headers
        .map(|(name, value)| name.len() + value.len() + RESPONSE_BYTES)
        .sum();
    let bytes = base64::encoded_len(body.len()) + headers + RESPONSE_BYTES;
    let reservation = connection.reserve(bytes).await?;
    Ok(CollectedResponse {
        result: result_of(response.status, response.headers, body),
        bytes,
        reservation,
        _memory: memory,
        _large: large,
    })
}

/// Responds with the head, and streams the body afterwards. Returns when the last piece is
/// sent: until then this task keeps the feed alive.
async fn stream(
    connection: &Connection,
    response: Response,
    registration: Registration,
    acked: bool,
    reply: Reply,
) {
    let cancelled = registration.cancelled.clone();
    let number = registration.number;
    let window = connection.server.settings.http_window_bytes;
    // Released when the last piece is sent.
    let memory = connection.memory.charge(window).await;
    let Some((_memory, reply)) = reply.accept(memory.ok_or_else(RpcError::overloaded)) else {
        return;
    };
    let feed = BodyFeed::new(
        &connection.outbox,
        &connection.notifications,
        registration,
        window,
        acked,
    );
    let requests = &connection.exchanges.requests;
    if let Some(request) = requests.lock().in_progress.get_mut(&number) {
        // Acknowledgements reach the body from now on.
        request.body = Arc::downgrade(&feed);
    }
    let result = result_of(response.status, response.headers, Bytes::new());
    reply.send(Ok(result));
    let forwarded = cancelled.run_until_cancelled(feed.forward(response.body));
    if forwarded.await.is_none() {
        feed.update(|backlog| backlog.abort(CANCELLED.to_owned()));
    }
    feed.wait_until(Backlog::is_over).await;
}

fn request_of(
    params: HttpRequestParams,
    environment: &ServerEnvironment,
) -> Result<Request, RequestError> {
    let mut request = Request::new(&params.method, &params.url)?;
    for header in &params.headers {
        let variable = header.value_env_var.as_deref();
        let lookup = |name: &str| environment.get(name).map(Into::into);
        request = request.header(&header.name, &header.value, variable, lookup)?;
    }
    let body = params.body_base64.map(|body| Bytes::from(body.0));
    let request = request.body(body.unwrap_or_default())?;
    Ok(request
        .timeout(params.timeout_ms.map(Duration::from_millis))
        .follow_redirects(params.redirect_policy == RedirectPolicy::Follow))
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
