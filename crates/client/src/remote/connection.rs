//! One connection to a server: pairs requests with responses.
//!
//! - [`dial`]: opens transports to URLs, with [`tls`]; [`mod@launch`]: through a launched command
//! - [`dial_error`], [`tls_errors`]: why that failed; [`certificate_verifiers`]: whom TLS trusts
//! - [`receiver`]: the task that reads the connection

mod certificate_verifiers;
pub(super) mod dial;
pub(super) mod dial_error;
pub(super) mod launch;
pub(super) mod receiver;
pub(super) mod tls;
mod tls_errors;

use std::{collections::HashMap, sync::OnceLock};

use bytes::Bytes;
use outpost_protocol::{
    Empty, MAX_MESSAGE_BYTES, Malformed, Method, RpcError, encode_notification, encode_request,
    encode_write_block,
};
use outpost_rpc::{Outbox, OutgoingMessage};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    http::HttpBodies, process::terminate_params, recovery::LossReason, watches::ConnectionWatches,
};
use crate::Error;

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum CallError {
    /// The connection was lost before the response.
    Lost(String),
    /// The server rejected the request.
    Rejected(RpcError),
    /// The response can't be decoded.
    InvalidResponse(&'static str, serde_json::Error),
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Lost(reason) => Error::disconnected(reason),
            CallError::Rejected(error) => error.into(),
            CallError::InvalidResponse(method, error) => Error::InvalidResponse {
                method,
                reason: error.to_string().into(),
            },
        }
    }
}

/// A connection to a server.
pub(super) struct Connection {
    /// Later connections have higher numbers.
    pub(super) number: u64,
    pub(super) outbox: Outbox,
    /// Cancelled to drop the connection, and by the writer when a write fails.
    pub(super) broken: CancellationToken,
    requests: Mutex<Requests>,
    pub(super) bodies: HttpBodies,
    pub(super) watches: ConnectionWatches,
    /// Set before the pending requests are dropped.
    loss: OnceLock<LossReason>,
    /// Cancelled once the loss has been handled.
    closed: CancellationToken,
}

/// The requests of a connection that have no response yet, by id.
#[derive(Default)]
struct Requests {
    last_id: i64,
    pending: HashMap<i64, PendingRequest>,
}

/// A request without a response so far.
pub(super) enum PendingRequest {
    /// A caller waits. Dropping the sender reports the loss of the connection.
    Call {
        method: Method,
        reply: oneshot::Sender<Result<Bytes, CallError>>,
        /// The process that the request starts.
        start: Option<PendingStart>,
    },
    /// Terminates an orphaned process. No caller waits.
    Terminate(String),
    /// No caller waits, and the response has no effect.
    Ignored,
}

/// A process that is being started.
#[derive(Clone, Debug)]
pub(super) struct PendingStart {
    pub(super) id: String,
    /// Whether this client generated the id, so that no other process can have it.
    pub(super) generated_id: bool,
}

/// Receives a response. The sender is dropped if the connection is lost.
pub(super) type Response = oneshot::Receiver<Result<Bytes, CallError>>;

impl PendingRequest {
    /// Creates a call and the receiver of its response.
    pub(super) fn call(method: Method, start: Option<PendingStart>) -> (Self, Response) {
        let (reply, response) = oneshot::channel();
        let request = PendingRequest::Call {
            method,
            reply,
            start,
        };
        (request, response)
    }
}

impl Connection {
    pub(super) fn new(number: u64) -> Self {
        let broken = CancellationToken::new();
        Connection {
            number,
            outbox: Outbox::new(broken.clone()),
            broken,
            requests: Mutex::default(),
            bodies: HttpBodies::default(),
            watches: ConnectionWatches::default(),
            loss: OnceLock::new(),
            closed: CancellationToken::new(),
        }
    }

    /// Makes a request and waits for the response or the loss of the connection. Dropping the
    /// future leaves no state behind, but the server may still handle the request.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, CallError> {
        // Backpressure: wait while much is queued already.
        self.outbox.wait_below_limit().await;
        let (request, mut response) = PendingRequest::call(method, None);
        self.request(method, params, request)?;
        self.response(method, &mut response).await
    }

    /// Makes a request without waiting for its response.
    pub(super) fn request(
        &self,
        method: Method,
        params: &impl Serialize,
        request: PendingRequest,
    ) -> Result<(), CallError> {
        self.send(request, |message, id| {
            encode_request(message, id, method.name(), params)
                .map_err(|error| CallError::InvalidResponse(method.name(), error))
        })
    }

    /// Waits for a response and decodes it.
    pub(super) async fn response<R: DeserializeOwned>(
        &self,
        method: Method,
        response: &mut Response,
    ) -> Result<R, CallError> {
        let result = response.await.map_err(|_| self.lost_error())??;
        serde_json::from_slice(&result)
            .map_err(|error| CallError::InvalidResponse(method.name(), error))
    }

    /// Requests the termination of an orphaned process without waiting. If the connection is
    /// lost, the next one repeats it.
    pub(super) fn terminate_orphan(&self, id: String) {
        let request = PendingRequest::Terminate(id.clone());
        let _ = self.request(Method::ProcessTerminate, &terminate_params(id), request);
    }

    /// Writes a block of a file. Encodes the bytes directly instead of through serde.
    pub(super) async fn write_block(
        &self,
        handle_id: &str,
        offset: u64,
        chunk: &[u8],
    ) -> Result<(), CallError> {
        self.outbox.wait_below_limit().await;
        let (request, mut response) = PendingRequest::call(Method::FsWriteBlock, None);
        self.send(request, |message, id| {
            encode_write_block(message, id, handle_id, offset, chunk);
            Ok(())
        })?;
        let Empty {} = self.response(Method::FsWriteBlock, &mut response).await?;
        Ok(())
    }

    fn send(
        &self,
        request: PendingRequest,
        encode: impl FnOnce(&mut Vec<u8>, i64) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let mut requests = self.requests.lock();
        if self.is_lost() {
            return Err(self.lost_error());
        }
        let id = requests.last_id + 1;
        let mut message = Vec::new();
        encode(&mut message, id)?;
        if message.len() > MAX_MESSAGE_BYTES {
            let text = Malformed::TooLarge.to_string();
            return Err(CallError::Rejected(RpcError::invalid_request(text)));
        }
        requests.last_id = id;
        requests.pending.insert(id, request);
        // Send under the lock, so that requests go out in the order of their ids.
        self.outbox.send(OutgoingMessage::new(message));
        Ok(())
    }

    pub(super) fn notify(&self, method: &str, params: &impl Serialize) {
        let mut message = Vec::new();
        match encode_notification(&mut message, method, params) {
            Ok(()) => self.outbox.send(OutgoingMessage::new(message)),
            Err(error) => tracing::error!(%error, method, "failed to encode a notification"),
        }
    }

    /// Returns the ids of the pending requests.
    pub(super) fn pending_ids(&self) -> Vec<i64> {
        self.requests.lock().pending.keys().copied().collect()
    }

    /// Removes the pending request with this id.
    pub(super) fn take_request(&self, id: i64) -> Option<PendingRequest> {
        self.requests.lock().pending.remove(&id)
    }

    /// Marks the connection as lost and fails its pending requests. Returns the ids of processes
    /// whose start has no response: they may or may not run.
    pub(super) fn fail(&self, loss: LossReason) -> Vec<String> {
        let pending = {
            let mut requests = self.requests.lock();
            let _ = self.loss.set(loss);
            std::mem::take(&mut requests.pending)
        };
        let starts = pending
            .into_values()
            .filter_map(|request| match request {
                PendingRequest::Call { start, .. } => start.map(|start| start.id),
                PendingRequest::Terminate(_) | PendingRequest::Ignored => None,
            })
            .collect();
        self.bodies.fail(&self.lost_error().into());
        self.broken.cancel();
        self.outbox.end();
        starts
    }

    /// Waits until the connection is lost and returns the reason.
    pub(super) async fn closed(&self) -> LossReason {
        self.closed.cancelled().await;
        let loss = self.loss.get().cloned();
        loss.unwrap_or_else(|| LossReason::temporary("the connection was lost"))
    }

    /// Returns why the connection was lost, if it was.
    pub(super) fn loss(&self) -> Option<LossReason> {
        self.loss.get().cloned()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.loss.get().is_some()
    }

    fn lost_error(&self) -> CallError {
        let reason = self.loss.get().map(|loss| loss.reason.clone());
        CallError::Lost(reason.unwrap_or_else(|| "the connection was closed".to_owned()))
    }
}
