//! Dispatch of received messages, in the order of the wire.

use std::sync::{Arc, atomic::Ordering};

use outpost_engine::{Epoch, Seq, Session};
use outpost_protocol::{
    AckParams, ErrorKind, Family, HTTP_ACK, HTTP_CANCEL, HttpAckParams, HttpCancelParams,
    INITIALIZED, Incoming, InitializeParams, InvalidParams, Lane, Malformed, MemberNames, Method,
    NoMemory, PROCESS_ACK, PathUriError, RequestId, RpcError, encode_error, family_of_name,
    has_client_info, names_argv, parse_params,
};
use outpost_rpc::{Admission, Framing, OutgoingMessage, ProcessLanes};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tracing::Instrument;

use super::{Caller, Connection, Handshake, Reply, reply::no_memory};
use crate::dialects::{exec, fs::FileService, scoped::Scopes, session};

/// Message size from which memory is checked before params are parsed.
const LARGE_BYTES: usize = 64 * 1024;
/// Copies of a large request in memory: the parsed params, and the arguments or bytes made
/// from them.
const REQUEST_COPIES: usize = 2;

/// Limit for client text that is echoed in an error message, in characters.
const MAX_ECHOED_CHARS: usize = 300;

/// The dispatcher of one connection. Owned by the task that reads it.
pub(super) struct Dispatch {
    pub(super) connection: Arc<Connection>,
    framing: Framing,
    handshake: Handshake,
    /// The session, and the attachment of it that this connection is.
    session: Option<(Session, Epoch)>,
    admission: Admission,
    /// Lanes of the session's processes.
    pub(super) lanes: ProcessLanes,
    /// The client has the capability `experimentalApi`.
    is_experimental: bool,
    /// The client wants every unknown member to be rejected.
    is_strict: bool,
    /// `command/exec` is the one of the v0 dialect.
    pub(super) speaks_v0: bool,
    /// Processes that belong to the connection.
    pub(super) scopes: Scopes,
    /// File handles and file operations of the connection.
    pub(super) files: Arc<FileService>,
}

/// A request whose params are not yet parsed.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) params: Option<&'a RawValue>,
    pub(super) members: MemberNames<'a>,
    pub(super) reply: Reply,
}

impl<'a> Request<'a> {
    /// Rejects the request if its params have misspelt members, or unknown ones if `strict`.
    fn check_members(self, dialect: Option<&str>, strict: bool) -> Option<Self> {
        let method = self.method;
        let checked = self.members.check(method.name(), dialect, strict);
        let checked = checked.map_err(|error| invalid_params(method, &error));
        let ((), reply) = self.reply.accept(checked)?;
        Some(Request { reply, ..self })
    }

    /// Parses the params. Rejects the request if they are invalid.
    pub(super) fn parse<T: Deserialize<'a>>(self) -> Option<(T, Reply)> {
        let method = self.method;
        let parsed = parse_params(self.params).map_err(|error| invalid_params(method, &error));
        self.reply.accept(parsed)
    }

    /// Serves the request and responds at once. Returns `None` if the params are invalid, but not if
    /// `serve` fails.
    pub(super) fn respond_now<T: Deserialize<'a>, R: Serialize>(
        self,
        serve: impl FnOnce(T) -> Result<R, RpcError>,
    ) -> Option<()> {
        let (params, reply) = self.parse()?;
        reply.send(serve(params));
        Some(())
    }

    pub(super) fn reject_method(self) -> Option<()> {
        let error = RpcError::method_not_found(self.method.name());
        self.reply.reject(error);
        None
    }
}

/// Returns the error for invalid params. The app-server has its own, and so has a file on another
/// host.
pub(super) fn invalid_params(method: Method, error: &InvalidParams) -> RpcError {
    let text = truncated(&error.to_string());
    match method.family() {
        Family::App => RpcError::invalid_request(format!("Invalid request: {text}")),
        Family::Filesystem if error.is_foreign_path() => {
            RpcError::invalid_request(PathUriError::ForeignHost.to_string())
        }
        _ => RpcError::invalid_params(format!("invalid params: {text}")),
    }
}

/// Truncates text that may echo megabytes of the request.
fn truncated(text: &str) -> String {
    text.chars().take(MAX_ECHOED_CHARS).collect()
}

impl Dispatch {
    pub(super) fn new(connection: Arc<Connection>, framing: Framing) -> Self {
        let settings = &connection.server.settings;
        Dispatch {
            admission: Admission::new(
                settings.max_in_flight,
                settings.in_flight_bytes,
                settings.admission_timeout,
            ),
            lanes: ProcessLanes::new(&connection.server.tasks),
            is_experimental: false,
            is_strict: false,
            speaks_v0: false,
            scopes: Scopes::default(),
            files: FileService::new(&connection),
            connection,
            framing,
            handshake: Handshake::default(),
            session: None,
        }
    }

    /// Handles a message.
    pub(super) async fn message(&mut self, message: &[u8]) {
        match Incoming::parse(message) {
            Err(malformed) => self.malformed(&malformed),
            Ok(Incoming::Request {
                id,
                method,
                params,
                trace,
                members,
            }) => {
                let parent = trace.and_then(|trace| trace.traceparent);
                let span = tracing::debug_span!("request", method = &*method, parent);
                self.request(id, &method, (params, members), message.len())
                    .instrument(span)
                    .await;
            }
            Ok(Incoming::Notification {
                method,
                params,
                members,
            }) => self.notification(&method, params, &members),
            // Never answered: two peers that answer each other's errors would loop.
            Ok(Incoming::Error {
                id: None | Some(RequestId::UNATTRIBUTED),
            }) => {
                tracing::debug!("client reported an error without request id");
            }
            Ok(Incoming::Response { id } | Incoming::Error { id: Some(id) }) => {
                let id = serde_json::to_string(&id).unwrap_or_default();
                self.reject_unattributed(
                    ErrorKind::UnexpectedMessage,
                    format!("unexpected response to request id {id}"),
                );
            }
        }
    }

    /// Detaches the session, and ends the processes and files that belong to the
    /// connection.
    pub(super) fn end(&mut self) {
        self.connection.gone.cancel();
        self.scopes.end();
        self.files.end();
        self.connection.feeds.clear();
        if let Some((session, epoch)) = self.session.take() {
            self.connection.server.engine.detach(&session, epoch);
        }
    }

    /// Waits until every request has been answered.
    pub(super) async fn all_requests_finished(&self) {
        self.admission.idle().await;
    }

    /// Reports a malformed message.
    pub(super) fn malformed(&self, malformed: &Malformed) {
        let prefix = self.framing.malformed_prefix();
        self.reject_unattributed(
            ErrorKind::MalformedMessage,
            format!("{prefix}: {malformed}"),
        );
    }

    /// Sends an error that belongs to no request.
    fn reject_unattributed(&self, kind: ErrorKind, text: String) {
        let mut message = Vec::new();
        encode_error(
            &mut message,
            &RequestId::UNATTRIBUTED,
            &RpcError::invalid_request(text).with_kind(kind),
        );
        self.connection.outbox.send(OutgoingMessage::new(message));
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>, members: &MemberNames<'_>) {
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
        (params, members): (Option<&RawValue>, &MemberNames<'_>),
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

    /// Checks and admits a request, and serves it. Returns `None` if it was rejected before.
    async fn request(
        &mut self,
        id: RequestId,
        name: &str,
        (params, members): (Option<&RawValue>, MemberNames<'_>),
        bytes: usize,
    ) -> Option<()> {
        let reply = Reply::new(self.connection.outbox.clone(), id);
        let (method, reply) = reply.accept(self.check(name, bytes))?;
        let reply = match method.lane() {
            Lane::Handshake | Lane::Control => reply,
            Lane::Keyed | Lane::Free => self.admit(bytes, reply).await?,
        };
        let request = Request {
            method,
            params,
            members,
            reply,
        };
        if method.family() == Family::Handshake {
            return self.initialize(request);
        }
        self.speaks_v0 |= method == Method::CommandExec && names_argv(params);
        let dialect = self.speaks_v0.then_some("v0");
        let request = request.check_members(dialect, self.is_strict)?;
        match method.family() {
            Family::App => self.serve_scoped(request).await,
            Family::Filesystem => self.serve_fs(request).await,
            _ => self.serve_exec(request).await,
        }
    }

    /// Checks the handshake, the method and the memory for a request.
    fn check(&self, name: &str, bytes: usize) -> Result<Method, RpcError> {
        match family_of_name(name) {
            None | Some(Family::Handshake) => {}
            Some(family) => self.handshake.admits(family)?,
        }
        let method = Method::from_name(name);
        let method = method.ok_or_else(|| RpcError::method_not_found(&truncated(name)))?;
        if bytes > LARGE_BYTES && NoMemory::unless_room_for(bytes * REQUEST_COPIES).is_err() {
            return Err(no_memory("request"));
        }
        Ok(method)
    }

    /// Waits for the admission of a request of `bytes`.
    async fn admit(&self, bytes: usize, reply: Reply) -> Option<Reply> {
        let connection = &self.connection;
        // While admission waits for room, the connection is not read.
        connection.reads_paused.store(true, Ordering::Release);
        let admitted = tokio::select! {
            biased;
            admitted = self.admission.admit(bytes) => Some(admitted),
            () = connection.gone.cancelled() => None,
            () = connection.replaced.cancelled() => None,
            () = connection.server.ending.cancelled() => None,
        };
        connection.reads_paused.store(false, Ordering::Release);
        let (ticket, reply) = reply.accept(admitted?.ok_or_else(RpcError::overloaded))?;
        Some(reply.counted(ticket))
    }

    /// Counts a control request against the admission limit if it `waits` for a start; the
    /// number of waiting requests would be unbounded otherwise.
    pub(super) fn admit_control(&self, waits: bool, reply: Reply) -> Option<Reply> {
        if !waits {
            return Some(reply);
        }
        let admitted = self.admission.admit_small();
        let (ticket, reply) = reply.accept(admitted.ok_or_else(RpcError::overloaded))?;
        Some(reply.counted(ticket))
    }

    fn initialize(&mut self, request: Request<'_>) -> Option<()> {
        // Checked before the params: a second `initialize` fails whatever it contains.
        let params = request.params;
        let admitted = self.handshake.admits_initialize(|| has_client_info(params));
        let ((), reply) = request.reply.accept(admitted)?;
        let request = Request { reply, ..request };
        let strict = parse_params::<InitializeParams>(params).is_ok_and(|params| params.strict);
        let request = request.check_members(None, strict)?;
        let (params, reply) = request.parse::<InitializeParams>()?;
        let opened = session::initialize(&self.connection, &params);
        let ((session, epoch, result), reply) = reply.accept(opened)?;
        self.handshake = Handshake::Answered;
        self.session = Some((session.clone(), epoch));
        self.is_strict = params.strict;
        self.is_experimental = params.capabilities.unwrap_or_default().experimental_api;
        reply.send(Ok(result));
        // A resumed session continues from the client's cursors.
        for process in session.processes() {
            let cursor = params.resume_from.get(process.id()).map(|seq| Seq(*seq));
            let encoder = exec::ExecEventEncoder::new(&process);
            let feeds = &self.connection.feeds;
            feeds.open((&session, epoch), &process, cursor, encoder);
        }
        Some(())
    }

    /// Rejects the use of `what` unless the client has opted in.
    pub(super) fn check_experimental(&self, what: &str) -> Result<(), RpcError> {
        if self.is_experimental {
            return Ok(());
        }
        let message = format!("{what} requires experimentalApi capability");
        Err(RpcError::invalid_request(message))
    }

    /// Returns the caller of a request. Always present after the handshake check.
    pub(super) fn caller(&self) -> Option<Caller> {
        let (session, _) = self.session.as_ref()?;
        Some(Caller {
            connection: Arc::clone(&self.connection),
            session: session.clone(),
            cross_session: false,
        })
    }
}

/// Detaches the session and closes the socket even if the connection's task panics.
impl Drop for Dispatch {
    fn drop(&mut self) {
        self.end();
        self.connection.outbox.end();
    }
}
