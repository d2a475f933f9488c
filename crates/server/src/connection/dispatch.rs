//! Dispatch of received messages, in the order of the wire.

use std::sync::Arc;

use outpost_engine::{Epoch, Seq, Session};
use outpost_protocol::{
    ErrorKind, Family, Incoming, InitializeParams, Lane, Method, NoMemory, PresentMembers,
    RequestId, RpcError, family_of_name, has_client_info, names_argv, parse_params,
};
use outpost_rpc::{Framing, MemoryCharge, ProcessLanes};
use serde_json::value::RawValue;
use tracing::Instrument;

use super::{
    Caller, Connection, Handshake, Reply,
    reply::no_memory,
    unparsed_request::{Request, invalid_params, params_cost, truncated},
};
use crate::auth::required_scope;
use crate::dialects::{
    exec, fs::FileService, notifier::NotificationOptions, per_connection::ConnectionSessions,
    session,
};

/// Message size from which memory is checked before params are parsed.
const LARGE_BYTES: usize = 64 * 1024;
/// Copies of a large request in memory: the parsed params, and the arguments or bytes made
/// from them.
const REQUEST_COPIES: usize = 2;

/// The dispatcher of one connection. Owned by the task that reads it.
pub(super) struct Dispatch {
    pub(super) connection: Arc<Connection>,
    pub(super) framing: Framing,
    pub(super) handshake: Handshake,
    /// The session, and the attachment of it that this connection is.
    pub(super) session: Option<(Session, Epoch)>,
    /// Lanes of the session's processes.
    pub(super) lanes: ProcessLanes,
    /// The client has the capability `experimentalApi`.
    is_experimental: bool,
    /// The client asked that every unknown member is rejected.
    pub(super) is_strict: bool,
    /// `command/exec` is that of the v0 dialect.
    pub(super) speaks_v0: bool,
    /// The client is an app-server client: it was initialized with `clientInfo`.
    pub(super) is_app: bool,
    /// Processes that belong to the connection.
    pub(super) connection_sessions: ConnectionSessions,
    /// File handles and file operations of the connection.
    pub(super) files: Arc<FileService>,
}

impl Dispatch {
    pub(super) fn new(connection: Arc<Connection>, framing: Framing) -> Self {
        Dispatch {
            lanes: ProcessLanes::new(&connection.server.tasks),
            is_experimental: false,
            is_strict: false,
            speaks_v0: false,
            is_app: false,
            connection_sessions: ConnectionSessions::default(),
            files: FileService::new(&connection),
            connection,
            framing,
            handshake: Handshake::default(),
            session: None,
        }
    }

    /// Handles a message, which holds `charge` if it is large.
    pub(super) async fn message(&mut self, message: &[u8], charge: Option<MemoryCharge>) {
        match Incoming::parse(message) {
            Err(malformed) => self.reject_malformed(&malformed, message),
            Ok(Incoming::Request {
                id,
                method,
                params,
                trace,
                members,
            }) => {
                let parent = trace.and_then(|trace| trace.traceparent);
                let span = tracing::debug_span!("request", method = &*method, parent);
                self.request(id, &method, (params, members), (message, charge))
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
            Ok(Incoming::Response { id, result })
                if self.connection.policy_requests.answer(&id, Some(result)) => {}
            Ok(Incoming::Error { id: Some(id) })
                if self.connection.policy_requests.answer(&id, None) => {}
            Ok(Incoming::Response { id, .. } | Incoming::Error { id: Some(id) }) => {
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
        self.connection_sessions.end();
        self.files.end();
        self.connection.watches.end();
        self.connection.policy_requests.end();
        self.connection.feeds.clear();
        self.connection.sessions.lock().clear();
        if let Some((session, epoch)) = self.session.take() {
            self.connection.server.engine.detach(&session, epoch);
        }
    }

    /// Waits until every request has been answered.
    pub(super) async fn all_requests_finished(&self) {
        self.connection.admission.idle().await;
    }

    /// Returns whether `initialize` was answered.
    pub(super) fn is_initialized(&self) -> bool {
        self.handshake != Handshake::New
    }

    /// Checks and admits a request, and serves it. Returns `None` if it was rejected before.
    async fn request(
        &mut self,
        id: RequestId,
        name: &str,
        (params, members): (Option<&RawValue>, PresentMembers<'_>),
        (message, mut charge): (&[u8], Option<MemoryCharge>),
    ) -> Option<()> {
        let reply =
            Reply::new(self.connection.outbox.clone(), id).audited(&self.connection.audit, name);
        let (method, reply) = reply.accept(self.check(name, params, message.len()))?;
        self.connection.audit.record_signal(method, params);
        let is_app = self.is_app && method.is_of_app_server();
        let reply = reply.for_app(is_app);
        let reply = match method.lane() {
            Lane::Handshake | Lane::Control => reply,
            Lane::Keyed | Lane::Free => {
                // The message holds its own part of the charge until it was handled.
                let params = charge
                    .as_mut()
                    .map(|charge| charge.split_off(message.len()));
                self.admit(message, params, reply).await?
            }
        };
        let request = Request {
            method,
            params,
            members,
            reply,
            is_app,
        };
        if method.family() == Family::Handshake {
            return self.initialize(request);
        }
        self.speaks_v0 |= method == Method::CommandExec && names_argv(params);
        let dialect = match method.family() {
            Family::Filesystem => is_app.then_some("app"),
            _ => self.speaks_v0.then_some("v0"),
        };
        let request = request.check_members(dialect, self.is_strict)?;
        match method.family() {
            Family::App => self.serve_per_connection(request).await,
            Family::Filesystem => self.serve_fs(request).await,
            Family::EnvironmentConfig | Family::CapabilityDiscovery => {
                self.serve_discovery(request)
            }
            _ => self.serve_exec(request).await,
        }
    }

    /// Checks the handshake, the method and the memory for a request.
    fn check(
        &self,
        name: &str,
        params: Option<&RawValue>,
        bytes: usize,
    ) -> Result<Method, RpcError> {
        let method = Method::from_name(name);
        match family_of_name(name) {
            None | Some(Family::Handshake) => {}
            // Clients of the app-server need not send `initialized`.
            Some(Family::Filesystem) if self.is_app => {}
            Some(family) => self.handshake.admits(family).map_err(|too_early| {
                // As in the released exec-server, which decodes params first.
                let method = method.filter(|_| family != Family::App);
                let decoded = method.map(|method| (method, method.check_params(params)));
                match decoded {
                    Some((method, Err(error))) => invalid_params(method, false, &error),
                    _ => too_early,
                }
            })?,
        }
        let method = method.ok_or_else(|| match self.is_app {
            true => RpcError::unknown_variant(&truncated(name)),
            false => RpcError::method_not_found(&truncated(name)),
        })?;
        if let Some(scope) = required_scope(method) {
            self.connection.principal.require(scope)?;
        }
        if bytes > LARGE_BYTES && NoMemory::unless_space_for(bytes * REQUEST_COPIES).is_err() {
            return Err(no_memory("request"));
        }
        Ok(method)
    }

    /// Waits for the admission of a request, and for the memory of its params. `charge` is the
    /// part of it that was taken already.
    async fn admit(
        &self,
        message: &[u8],
        charge: Option<MemoryCharge>,
        reply: Reply,
    ) -> Option<Reply> {
        let connection = &self.connection;
        let admit = async {
            let mut ticket = self.connection.admission.admit(message.len()).await?;
            let mut charge = charge.unwrap_or_else(|| connection.memory.empty_charge());
            let missing = params_cost(message).saturating_sub(charge.bytes());
            if !charge.grow(missing).await {
                return None;
            }
            ticket.hold(charge);
            Some(ticket)
        };
        // While admission waits for space, the connection is not read.
        let paused = connection.read_counter.pause();
        let admitted = tokio::select! {
            biased;
            admitted = admit => Some(admitted),
            () = connection.gone.cancelled() => None,
            () = connection.replaced.cancelled() => None,
            () = connection.unauthorized.cancelled() => None,
            () = connection.server.ending.cancelled() => None,
        };
        drop(paused);
        let (ticket, reply) = reply.accept(admitted?.ok_or_else(RpcError::overloaded))?;
        Some(reply.counted(ticket))
    }

    /// Counts a control request against the admission limit if it `waits` for a start; the
    /// number of waiting requests would be unbounded otherwise.
    pub(super) fn admit_control(&self, waits: bool, reply: Reply) -> Option<Reply> {
        if !waits {
            return Some(reply);
        }
        let admitted = self.connection.admission.admit_small();
        let (ticket, reply) = reply.accept(admitted.ok_or_else(RpcError::overloaded))?;
        Some(reply.counted(ticket))
    }

    fn initialize(&mut self, request: Request<'_>) -> Option<()> {
        // Checked before the params: a second `initialize` fails whatever it contains.
        let params = request.params;
        let admitted = self.handshake.admits_initialize(|| has_client_info(params));
        let ((), reply) = request.reply.accept(admitted)?;
        let request = Request {
            reply,
            is_app: has_client_info(params),
            ..request
        };
        let strict = parse_params::<InitializeParams>(params).is_ok_and(|params| params.strict);
        let request = request.check_members(None, strict)?;
        let (params, reply) = request.parse::<InitializeParams>()?;
        let is_named = params.client_name.is_some() || params.client_info.is_some();
        let named = is_named
            .then_some(())
            .ok_or_else(|| RpcError::invalid_params("missing field `clientName`"));
        let ((), reply) = reply.accept(named)?;
        let opened = session::initialize(&self.connection, &params);
        let ((session, epoch, result), reply) = reply.accept(opened)?;
        self.handshake = Handshake::Answered;
        self.session = Some((session.clone(), epoch));
        self.connection.sessions.lock().push(session.clone());
        self.connection.audit.set_session(&session);
        self.is_strict = params.strict;
        self.is_app = params.client_info.is_some();
        let capabilities = params.capabilities.unwrap_or_default();
        self.is_experimental = capabilities.experimental_api;
        let _ = self.connection.notifications.set(NotificationOptions {
            suppressed: capabilities.opt_out_notification_methods,
            timestamped: self.is_app,
        });
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
