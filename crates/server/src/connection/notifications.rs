//! Notifications of the client, and errors that belong to no request.

use outpost_engine::Seq;
use outpost_protocol::{
    AckParams, ErrorKind, HTTP_ACK, HTTP_CANCEL, HttpAckParams, HttpCancelParams, INITIALIZED,
    IdScanner, Malformed, PROCESS_ACK, PresentMembers, RequestId, RpcError, encode_error,
    parse_params,
};
use outpost_rpc::{OutgoingMessage, SkipReason};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Handshake, dispatch::Dispatch, unparsed_request::truncated};

impl Dispatch {
    pub(super) fn notification(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        members: &PresentMembers<'_>,
    ) {
        let params = (params, members);
        match (method, self.handshake) {
            (INITIALIZED, Handshake::Answered | Handshake::Ready) => {
                self.handshake = Handshake::Ready;
            }
            (PROCESS_ACK, Handshake::Ready) => self.notified(method, params, |ack: &AckParams| {
                if let Some((session, _)) = &self.session {
                    session.acknowledge(&ack.process_id, Seq(ack.seq));
                }
            }),
            (HTTP_ACK, Handshake::Ready) => self.notified(method, params, |ack: &HttpAckParams| {
                self.connection
                    .exchanges
                    .acknowledge(&ack.request_id, ack.seq);
            }),
            (HTTP_CANCEL, Handshake::Ready) => {
                self.notified(method, params, |cancel: &HttpCancelParams| {
                    self.connection.exchanges.cancel(&cancel.request_id);
                });
            }
            _ => {
                let method = truncated(method);
                self.reject_unattributed(
                    ErrorKind::UnexpectedMessage,
                    format!("unexpected notification method: {method}"),
                );
            }
        }
    }

    /// Handles a notification. Only invalid params are answered, with an error.
    fn notified<T: DeserializeOwned>(
        &self,
        method: &str,
        (params, members): (Option<&RawValue>, &PresentMembers<'_>),
        handle: impl FnOnce(&T),
    ) {
        let checked = members.check(method, None, self.is_strict);
        match checked.and_then(|()| parse_params(params)) {
            Ok(params) => handle(&params),
            Err(error) => {
                let text = truncated(&error.to_string());
                self.reject_unattributed(
                    ErrorKind::InvalidParams,
                    format!("invalid params of {method}: {text}"),
                );
            }
        }
    }

    /// Reports a message that was skipped, with its id if it is a request.
    pub(super) fn skipped(&self, reason: SkipReason, id: Option<RequestId>) {
        let error = match reason {
            SkipReason::TooLong if self.is_initialized() => self.malformed(&Malformed::TooLarge),
            SkipReason::TooLong => self.malformed(&Malformed::TooLargeForHandshake),
            SkipReason::NoMemory => self.malformed(&Malformed::NoMemory),
            SkipReason::Overloaded => RpcError::overloaded(),
        };
        self.send_error(&id.unwrap_or(RequestId::UNATTRIBUTED), &error);
    }

    /// Returns the error of a malformed message.
    fn malformed(&self, malformed: &Malformed) -> RpcError {
        let prefix = self.framing.malformed_prefix();
        RpcError::invalid_request(format!("{prefix}: {malformed}"))
            .with_kind(ErrorKind::MalformedMessage)
    }

    /// Reports a malformed message. An app-server client gets an error only if a limit of this
    /// server rejects its request, because its own server ignores everything else.
    pub(super) fn reject_malformed(&self, malformed: &Malformed, message: &[u8]) {
        let error = self.malformed(malformed);
        if !self.is_app {
            return self.send_error(&RequestId::UNATTRIBUTED, &error);
        }
        let mut scanner = IdScanner::default();
        if malformed.is_limit() {
            scanner.scan(message);
        }
        match scanner.request_id() {
            Some(id) => self.send_error(&id, &error),
            None => tracing::debug!(%error, "ignored a malformed message"),
        }
    }

    /// Sends an error that belongs to no request. Clients of the app-server do not expect one.
    pub(super) fn reject_unattributed(&self, kind: ErrorKind, text: String) {
        if self.is_app {
            return tracing::debug!(text, "ignored a message");
        }
        let error = RpcError::invalid_request(text).with_kind(kind);
        self.send_error(&RequestId::UNATTRIBUTED, &error);
    }

    fn send_error(&self, id: &RequestId, error: &RpcError) {
        let mut message = Vec::new();
        encode_error(&mut message, id, error);
        self.connection.outbox.send(OutgoingMessage::new(message));
    }
}
