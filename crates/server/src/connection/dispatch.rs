//! Dispatch of received messages, in the order of the wire.

use std::sync::{Arc, atomic::Ordering};

use outpost_engine::{Epoch, Seq, Session};
use outpost_protocol::{
    ErrorKind, Family, HTTP_ACK, HTTP_CANCEL, INITIALIZED, Incoming, InitializeParams, Lane,
    Malformed, Method, NoMemory, PROCESS_ACK, RequestId, RpcError, encode_error, family_of_name,
    has_client_info, parse_params,
};
use outpost_rpc::{Admission, Framing, Outbox, OutgoingMessage};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::{
    Caller, ConnectionLink, Handshake, Order, Reply,
    app_requests::AppState,
    params::{CrossSession, parsed, resolve_session, truncated},
    reply::no_memory,
};
use crate::{
    Peer, Server,
    dialects::{
        exec,
        fs::FileService,
        http::{self, Exchanges},
        initialize,
    },
};

/// Message size from which memory is checked before params are parsed.
const LARGE_BYTES: usize = 64 * 1024;
/// Copies of a large request in memory: the parsed params, and the arguments or bytes made
/// from them.
const REQUEST_COPIES: usize = 2;

/// The dispatcher of one connection. Owned by the task that reads it.
pub(super) struct Dispatch {
    pub(super) server: Server,
    outbox: Outbox,
    pub(super) link: Arc<ConnectionLink>,
    framing: Framing,
    peer: Peer,
    handshake: Handshake,
    pub(super) caller: Option<Caller>,
    /// Attachment of the session that this connection is.
    epoch: Option<Epoch>,
    /// Tasks of pending long polls.
    long_polls: TaskTracker,
    admission: Admission,
    /// Lanes of the session's processes.
    pub(super) order: Order,
    /// State of the dialects whose processes belong to the connection.
    pub(super) app: AppState,
    /// File handles and file operations of the connection.
    pub(super) file_service: FileService,
}

impl Dispatch {
    pub(super) fn new(link: Arc<ConnectionLink>, framing: Framing, peer: Peer) -> Self {
        let server = link.server.clone();
        let outbox = link.outbox.clone();
        let settings = server.settings();
        Dispatch {
            admission: Admission::new(
                settings.max_in_flight,
                settings.in_flight_bytes,
                settings.admission_timeout,
            ),
            order: Order::new(server.tasks()),
            app: AppState::default(),
            file_service: FileService::new(&server, &outbox, &link.gone),
            server,
            outbox,
            link,
            framing,
            peer,
            handshake: Handshake::default(),
            caller: None,
            epoch: None,
            long_polls: TaskTracker::new(),
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
            }) => {
                let parent = trace.and_then(|trace| trace.traceparent);
                let span = tracing::debug_span!("request", method = &*method, parent);
                self.request(id, &method, params, message.len())
                    .instrument(span)
                    .await;
            }
            Ok(Incoming::Notification { method, params }) => self.notification(&method, params),
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

    /// Reports a message that was skipped while reading.
    pub(super) fn skipped(&self, why: &Malformed) {
        self.malformed(why);
    }

    /// Detaches the session, and ends the processes and files that belong to the
    /// connection.
    pub(super) fn end(&mut self) {
        self.link.gone.cancel();
        self.app.end();
        self.file_service.end();
        if let (Some(caller), Some(epoch)) = (self.caller.take(), self.epoch) {
            self.server.engine().detach(&caller.session, epoch);
        }
    }

    /// Waits until every request has been answered.
    pub(super) async fn all_requests_finished(&self) {
        self.admission.idle().await;
    }

    /// Waits until every long poll has been answered.
    pub(super) async fn long_polls_finished(&self) {
        self.long_polls.close();
        self.long_polls.wait().await;
    }

    fn malformed(&self, malformed: &Malformed) {
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
        self.outbox.send(OutgoingMessage::new(message));
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        match (method, self.handshake) {
            (INITIALIZED, Handshake::Answered | Handshake::Ready) => {
                self.handshake = Handshake::Ready;
            }
            (PROCESS_ACK, Handshake::Ready) => {
                self.notified(PROCESS_ACK, params, exec::acknowledge);
            }
            (HTTP_ACK, Handshake::Ready) => self.notified(HTTP_ACK, params, http::acknowledge),
            (HTTP_CANCEL, Handshake::Ready) => self.notified(HTTP_CANCEL, params, http::cancel),
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
        params: Option<&RawValue>,
        handle: fn(&Caller, &T),
    ) {
        match (parse_params(params), &self.caller) {
            (Ok(params), Some(caller)) => handle(caller, &params),
            (Err(error), _) => {
                let text = truncated(&error.to_string());
                self.reject_unattributed(
                    ErrorKind::InvalidParams,
                    format!("invalid params of {method}: {text}"),
                );
            }
            (Ok(_), None) => {}
        }
    }

    async fn request(
        &mut self,
        id: RequestId,
        name: &str,
        params: Option<&RawValue>,
        bytes: usize,
    ) {
        let control = Reply::new(self.outbox.clone(), id.clone(), None);
        let family = family_of_name(name);
        if let Some(family) = family.filter(|family| *family != Family::Handshake)
            && let Err(error) = self.handshake.admits(family)
        {
            return control.send::<()>(Err(error));
        }
        let Some(method) = Method::from_name(name) else {
            return control.send::<()>(Err(RpcError::method_not_found(&truncated(name))));
        };
        if bytes > LARGE_BYTES && NoMemory::unless_room_for(bytes * REQUEST_COPIES).is_err() {
            return control.send::<()>(Err(no_memory("request")));
        }
        match method.lane() {
            Lane::Handshake => self.initialize(control, params),
            Lane::Control => self.serve(method, control, params).await,
            Lane::Process | Lane::Free => {
                // While admission waits for room, the connection is not read.
                self.link.reads_paused.store(true, Ordering::Release);
                let admitted = tokio::select! {
                    biased;
                    admitted = self.admission.admit(bytes) => Some(admitted),
                    () = self.wait_until_ending() => None,
                };
                self.link.reads_paused.store(false, Ordering::Release);
                let Some(admitted) = admitted else { return };
                match admitted {
                    None => control.send::<()>(Err(RpcError::overloaded())),
                    Some(ticket) => {
                        let reply = Reply::new(self.outbox.clone(), id, Some(ticket));
                        self.serve(method, reply, params).await;
                    }
                }
            }
        }
    }

    /// Waits until the connection must end for a reason other than its input.
    async fn wait_until_ending(&self) {
        tokio::select! {
            () = self.link.gone.cancelled() => {}
            () = self.link.replaced.cancelled() => {}
            () = self.server.ending().cancelled() => {}
        }
    }

    async fn serve(&mut self, method: Method, reply: Reply, params: Option<&RawValue>) {
        match method.family() {
            Family::App => self.serve_app(method, reply, params).await,
            Family::Filesystem => self.serve_fs(method, reply, params).await,
            Family::Http => self.serve_http(reply, params),
            _ => self.serve_exec(method, reply, params).await,
        }
    }

    fn serve_http(&self, reply: Reply, params: Option<&RawValue>) {
        if let Some((caller, params, reply)) = self.parse_call(params, reply) {
            http::request(caller, params, reply);
        }
    }

    fn initialize(&mut self, reply: Reply, params: Option<&RawValue>) {
        // Checked before the params: a second `initialize` fails whatever it contains.
        if let Err(error) = self.handshake.admits_initialize(|| has_client_info(params)) {
            return reply.send::<()>(Err(error));
        }
        let Some((params, reply)) = parsed::<InitializeParams>(params, reply) else {
            return;
        };
        let mut opened = match initialize::initialize(&self.server, &params, &self.link) {
            Err(error) => return reply.send::<()>(Err(error)),
            Ok(opened) => opened,
        };
        // A capability is announced only where it works.
        opened.result.capabilities.session_list = self.peer == Peer::Owner;
        self.handshake = Handshake::Answered;
        self.epoch = Some(opened.epoch);
        let capabilities = params.capabilities.unwrap_or_default();
        let concurrent_requests = self.server.settings().concurrent_requests;
        self.app.is_experimental = capabilities.experimental_api;
        self.caller = Some(Caller {
            server: self.server.clone(),
            outbox: self.outbox.clone(),
            session: opened.session.clone(),
            start_permits: Arc::new(Semaphore::new(
                concurrent_requests.min(Semaphore::MAX_PERMITS),
            )),
            exchanges: Exchanges::new(self.server.settings().http_requests),
            gone: self.link.gone.clone(),
            replaced: self.link.replaced.clone(),
            long_polls: self.long_polls.clone(),
            peer: self.peer,
            cross_session: false,
        });
        reply.send(Ok(opened.result));
        // A resumed session continues from the client's cursors.
        for process in opened.session.processes() {
            let cursor = params.resume_from.get(process.id()).map(|seq| Seq(*seq));
            let owner = (&opened.session, opened.epoch);
            let encoder = exec::ExecEventEncoder::new(&process);
            let feeds = &self.link.feeds;
            feeds.open(&self.outbox, owner, &process, cursor, encoder);
        }
    }

    /// Counts a control request against the admission limit if it has to wait for a start;
    /// the number of waiting requests would be unbounded otherwise.
    pub(super) fn admit_control(&self, session: &Session, id: &str, reply: Reply) -> Option<Reply> {
        if !session.is_starting(id) {
            return Some(reply);
        }
        match self.admission.admit_small() {
            Some(ticket) => Some(reply.counted(ticket)),
            None => {
                reply.send::<()>(Err(RpcError::overloaded()));
                None
            }
        }
    }

    /// Parses params and returns them with the caller. Rejects invalid params.
    pub(super) fn parse_call<'a, T: Deserialize<'a>>(
        &self,
        params: Option<&'a RawValue>,
        reply: Reply,
    ) -> Option<(Caller, T, Reply)> {
        let (params, reply) = parsed(params, reply)?;
        // Always present: the handshake check passed.
        let caller = self.caller.clone()?;
        Some((caller, params, reply))
    }

    /// Like [`Self::parse_call`], for params that may name another session.
    pub(super) fn parse_cross_session_call<'a, T: Deserialize<'a> + CrossSession>(
        &self,
        params: Option<&'a RawValue>,
        reply: Reply,
    ) -> Option<(Caller, T, Reply)> {
        resolve_session(self.parse_call(params, reply)?)
    }
}

/// Detaches the session even if the connection's task panics.
impl Drop for Dispatch {
    fn drop(&mut self) {
        self.end();
    }
}
