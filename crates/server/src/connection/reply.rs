//! The response to a request.

use outpost_protocol::{
    ErrorKind, Method, NoMemory, RequestId, RpcError, encode_error, encode_response,
};
use outpost_rpc::{
    MemoryCharge, Outbox, OutgoingMessage, Ticket,
    outbox::{MessageFragment, Reservation},
};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::{
    audit::{ConnectionAudit, Event, Text},
    convert,
};

/// Sends the response to one request. Dropped without a response only if the connection has
/// ended.
pub(crate) struct Reply {
    outbox: Outbox,
    id: RequestId,
    ticket: Option<Ticket>,
    /// Errors have the codes of the app-server.
    is_app: bool,
    /// Records an error that the principal lacks a permission, with the name of the method.
    audit: Option<(ConnectionAudit, &'static str)>,
}

impl Reply {
    pub(crate) fn new(outbox: Outbox, id: RequestId) -> Self {
        Reply {
            outbox,
            id,
            ticket: None,
            is_app: false,
            audit: None,
        }
    }

    /// Records an error that the principal lacks a permission for this method.
    pub(crate) fn audited(mut self, audit: &ConnectionAudit, method: &str) -> Self {
        if audit.is_enabled() {
            let method = Method::from_name(method);
            self.audit = method.map(|method| (audit.clone(), method.name()));
        }
        self
    }

    /// Uses the error codes of the app-server if the request is one of it.
    pub(crate) fn for_app(self, is_app: bool) -> Self {
        Reply { is_app, ..self }
    }

    /// Returns the id of the request.
    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Whether the request is one of the app-server.
    pub(crate) fn is_for_app(&self) -> bool {
        self.is_app
    }

    /// Adds the request's admission ticket.
    pub(crate) fn counted(self, ticket: Ticket) -> Self {
        Reply {
            ticket: Some(ticket),
            ..self
        }
    }

    /// Takes the memory of the request, for bytes that outlive the response.
    pub(crate) fn take_memory(&mut self) -> Option<MemoryCharge> {
        self.ticket.as_mut()?.take_memory()
    }

    /// Returns the value with the reply. Rejects the request if there is an error instead.
    pub(crate) fn accept<T>(self, result: Result<T, RpcError>) -> Option<(T, Reply)> {
        match result {
            Ok(value) => Some((value, self)),
            Err(error) => {
                self.reject(error);
                None
            }
        }
    }

    /// Sends an error.
    pub(crate) fn reject(self, error: RpcError) {
        self.send::<()>(Err(error));
    }

    /// Sends the outcome of `job`.
    pub(crate) async fn send_outcome<T: Serialize>(
        self,
        job: impl Future<Output = Result<T, RpcError>>,
    ) {
        self.send(job.await);
    }

    /// Sends the response.
    pub(crate) fn send<T: Serialize>(self, result: Result<T, RpcError>) {
        let message = self.encode(Vec::new(), &result);
        self.send_message(message, None);
    }

    /// Sends a large result of about `bytes` with its memory reservation.
    pub(crate) fn send_large<T: Serialize>(
        self,
        result: T,
        bytes: usize,
        reservation: Reservation,
    ) {
        let mut message = Vec::new();
        let message = match message.try_reserve_exact(bytes) {
            Ok(()) => self.encode(message, &Ok(result)),
            Err(_) => self.encode::<()>(message, &Err(no_memory("response"))),
        };
        self.send_message(message, Some(reservation));
    }

    /// Sends the beginning of an encoded response. The caller sends the rest, or the
    /// connection is closed.
    pub(crate) fn send_blocks(
        self,
        message: Vec<u8>,
        reservation: Reservation,
    ) -> mpsc::Sender<MessageFragment> {
        let (blocks, rest) = mpsc::channel(1);
        self.outbox.send(OutgoingMessage {
            bytes: message,
            rest: Some(rest),
            ticket: self.ticket,
            reservation: Some(reservation),
        });
        blocks
    }

    /// Sends an encoded response, with its memory reservation if it is large.
    pub(crate) fn send_message(self, message: Vec<u8>, reservation: Option<Reservation>) {
        self.outbox.send(OutgoingMessage {
            bytes: message,
            rest: None,
            ticket: self.ticket,
            reservation,
        });
    }

    /// Encodes the response without sending it, and releases the ticket.
    pub(crate) fn into_message<T: Serialize>(self, result: &Result<T, RpcError>) -> Vec<u8> {
        self.encode(Vec::new(), result)
    }

    /// Records an error that is part of a result, if the principal lacks a permission.
    pub(crate) fn record_forbidden(&self, error: &RpcError) {
        let data = error.data.as_ref();
        let forbidden = data.filter(|data| data.kind == ErrorKind::Forbidden);
        if let (Some((audit, request)), Some(data)) = (&self.audit, forbidden) {
            let event = Event::Forbidden {
                request,
                scope: data.scope,
                reason: Text::new(&*error.message),
            };
            audit.record(None, &event);
        }
    }

    fn encode<T: Serialize>(&self, mut message: Vec<u8>, result: &Result<T, RpcError>) -> Vec<u8> {
        if let Err(error) = result {
            self.record_forbidden(error);
        }
        let encoded = match result {
            Ok(result) => encode_response(&mut message, &self.id, result),
            Err(error) if self.is_app => {
                encode_error(&mut message, &self.id, &convert::app_error(error));
                Ok(())
            }
            Err(error) => {
                encode_error(&mut message, &self.id, error);
                Ok(())
            }
        };
        if let Err(error) = encoded {
            message.clear();
            let error = RpcError::internal(format!("failed to encode the response: {error}"));
            encode_error(&mut message, &self.id, &error);
        }
        message
    }
}

/// Returns the error for a request that failed for lack of memory.
pub(crate) fn no_memory(what: &str) -> RpcError {
    RpcError::internal(format!("failed to hold the {what}: {NoMemory}"))
        .with_kind(ErrorKind::OutOfMemory)
}
