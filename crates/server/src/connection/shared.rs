//! State of a connection that its tasks, its requests and its session share.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use outpost_engine::{Epoch, Link, Process, ResumeError, Session, Start, StartError};
use outpost_protocol::{
    AccessScope, EnvironmentInfo, NETWORK_POLICY_DECISION, NetworkAnswer, NetworkDecision,
    NetworkPolicyDecision, NetworkPolicyRequestParams, NetworkTarget, PathUri, RpcError,
    encode_notification,
};
use outpost_rpc::{
    Admission, MemoryShare, Outbox, OutgoingMessage, PeerActivity, outbox::Reservation,
};
use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, oneshot},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::policy_requests::{self, PolicyRequests};
use crate::{
    Peer, Settings,
    audit::ConnectionAudit,
    auth::Principal,
    convert,
    dialects::{
        exec::ExecEventEncoder,
        feed::Feeds,
        fs::{Handles, Watches},
        http::Exchanges,
        notifier::SharedNotificationOptions,
    },
    server::ServerState,
};

/// A connection. Its session probes, replaces and feeds it through [`Link`].
pub(crate) struct Connection {
    /// A reference to this connection, for the task that a probe starts.
    me: Weak<Connection>,
    pub(crate) server: Arc<ServerState>,
    pub(crate) peer: Peer,
    /// The principal that it speaks for.
    pub(crate) principal: Principal,
    pub(crate) audit: ConnectionAudit,
    pub(crate) outbox: Outbox,
    /// How notifications are written.
    pub(crate) notifications: SharedNotificationOptions,
    /// The share of the connection in the server's memory.
    pub(crate) memory: MemoryShare,
    pub(crate) feeds: Arc<Feeds>,
    /// One permit per process start that may run at once.
    start_permits: Semaphore,
    /// Bounds the requests in flight.
    pub(super) admission: Admission,
    /// The open files.
    pub(crate) handles: Mutex<Handles>,
    /// The watched files.
    pub(crate) watches: Watches,
    /// The HTTP requests in flight.
    pub(crate) exchanges: Exchanges,
    /// The questions to the client.
    pub(super) policy_requests: PolicyRequests,
    /// Tasks of pending long polls.
    pub(crate) long_polls: TaskTracker,
    pub(super) read_counter: PeerActivity,
    /// The peer can be pinged; false on stdio.
    pingable: bool,
    /// Cancelled when the connection ends. The token of the outbox.
    pub(crate) gone: CancellationToken,
    /// Cancelled when another connection took over the session, or when a probe failed.
    pub(crate) replaced: CancellationToken,
    /// `replaced` was cancelled by a failed probe. The session is free to be resumed.
    pub(super) probe_failed: AtomicBool,
    /// A probe is running.
    probing: AtomicBool,
    /// Cancelled when its credential has expired or was revoked.
    pub(super) unauthorized: CancellationToken,
    /// Cancelled when another connection needs its permit.
    pub(crate) gives_way: CancellationToken,
    /// Cancelled when others wait for its memory and its peer does not read.
    pub(super) unread: CancellationToken,
    /// The sessions that the connection owns, including private sessions.
    pub(crate) sessions: Mutex<Vec<Session>>,
    opened: Instant,
    /// Time from `opened` to the last message, in milliseconds.
    last_message: AtomicU64,
}

/// The sender of a request, and the session that the request is about.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) connection: Arc<Connection>,
    pub(crate) session: Session,
    /// `session` belongs to another client. Reads must not advance that client's cursors.
    pub(crate) cross_session: bool,
}

impl Connection {
    /// Creates the state of a connection. `read_counter` counts what is received from it.
    pub(super) fn new(
        server: &Arc<ServerState>,
        (peer, principal, audit): (Peer, Principal, ConnectionAudit),
        memory: MemoryShare,
        read_counter: PeerActivity,
        pingable: bool,
    ) -> Arc<Self> {
        let gone = CancellationToken::new();
        let outbox = Outbox::with_memory(gone.clone(), memory.clone());
        let unread = CancellationToken::new();
        // A stdio connection is not closed: its end is the end of the server.
        if pingable {
            memory.close_if_unread(unread.clone());
        }
        let notifications = SharedNotificationOptions::default();
        let settings = &server.settings;
        let starts = settings.concurrent_requests;
        Arc::new_cyclic(|me| Connection {
            me: me.clone(),
            peer,
            watches: Watches::new(&outbox, &notifications, &memory),
            principal,
            audit,
            feeds: Feeds::new(&outbox, &notifications),
            outbox,
            notifications,
            memory,
            start_permits: Semaphore::new(starts.min(Semaphore::MAX_PERMITS)),
            admission: Admission::new(
                settings.max_in_flight,
                settings.in_flight_bytes,
                settings.admission_timeout,
            ),
            handles: Mutex::new(Handles::new(settings.open_files)),
            exchanges: Exchanges::new(settings.http_requests),
            policy_requests: PolicyRequests::default(),
            long_polls: TaskTracker::new(),
            read_counter,
            pingable,
            gone,
            replaced: CancellationToken::new(),
            probe_failed: AtomicBool::new(false),
            probing: AtomicBool::new(false),
            unauthorized: CancellationToken::new(),
            gives_way: CancellationToken::new(),
            unread,
            sessions: Mutex::default(),
            opened: Instant::now(),
            last_message: AtomicU64::new(0),
            server: Arc::clone(server),
        })
    }

    /// Records that a message was received.
    pub(super) fn record_message(&self) {
        let since_opened = self.opened.elapsed().as_millis() as u64;
        self.last_message.store(since_opened, Ordering::Relaxed);
    }

    /// Whether it may list sessions and use them without attaching: all of them with the scope `admin`, a
    /// principal its own. Other clients cannot be distinguished.
    pub(crate) fn lists_sessions(&self) -> bool {
        self.principal.has(AccessScope::Admin) || self.peer.is_principal()
    }

    /// The facts about the host. The working directory is one in which the principal may work: its first root
    /// unless that of the server lies below one of its roots.
    pub(crate) fn environment_info(&self) -> EnvironmentInfo {
        let mut info = self.server.host.info.clone();
        let roots = &self.principal.settings.roots;
        let is_below = roots
            .iter()
            .any(|root| info.cwd.as_path().starts_with(&root.real));
        if let Some(first) = roots.first().filter(|_| !is_below) {
            info.cwd = PathUri::from_path(&first.real);
        }
        info
    }

    /// Whether the connection may list this session and use it without attaching.
    pub(crate) fn is_listed(&self, session: &Session) -> bool {
        let is_own = self.lists_sessions() && session.peer() == self.peer;
        is_own || self.principal.has(AccessScope::Admin)
    }

    /// Whether it may be closed when another connection needs its permit: it is not initialized in time, or
    /// it has no processes, requests, open files or watches and has sent nothing for a while.
    pub(crate) fn is_idle(&self) -> bool {
        let sessions = self.sessions.lock();
        let last_message = Duration::from_millis(self.last_message.load(Ordering::Relaxed));
        let activity = Activity {
            initialized: !sessions.is_empty(),
            has_work: sessions.iter().any(Session::has_processes)
                || self.admission.requests() > 0
                || !self.handles.lock().is_empty()
                || !self.watches.is_empty()
                || !self.long_polls.is_empty()
                || !self.exchanges.is_empty(),
            open_for: self.opened.elapsed(),
            last_message,
        };
        activity.is_idle(&self.server.settings)
    }

    /// Starts a process. Its id is reserved before the first await, so that a later
    /// terminate finds it.
    pub(crate) async fn start(
        &self,
        session: &Session,
        mut start: Start,
    ) -> Result<Process, StartError> {
        let max_sessions = self.principal.settings.limits.sessions;
        let reservation = self.server.engine.reserve(session, &start, max_sessions)?;
        if let Err(error) = self.bound(&mut start).await {
            return Err(reservation.fail(error));
        }
        let _permit = self.start_permits.acquire().await;
        start.sandbox_network();
        if let Err(error) = self.audit.admit_start(&mut start) {
            return Err(reservation.fail(error.into()));
        }
        self.server.engine.start(session, reservation, start).await
    }

    /// Waits for space in the outbox for a response of `bytes`, so that large responses do
    /// not pile up for a client that does not read. Fails if there is no memory for it, or if
    /// the connection ends, when no response can be sent.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<Reservation, RpcError> {
        Ok(self.reserve_or(bytes, bytes).await?.0)
    }

    /// Reserves `bytes` if there is memory for them now, and `least` bytes otherwise. Returns
    /// whether all are reserved.
    pub(crate) async fn reserve_or(
        &self,
        bytes: usize,
        least: usize,
    ) -> Result<(Reservation, bool), RpcError> {
        tokio::select! {
            reserved = self.outbox.reserve_or(bytes, least) => {
                reserved.ok_or_else(RpcError::overloaded)
            }
            () = self.gone.cancelled() => Err(RpcError::internal("the connection has ended")),
        }
    }
}

/// The activity of a connection, which decides whether it is idle.
#[derive(Clone, Copy, Debug)]
struct Activity {
    initialized: bool,
    /// The connection has processes, requests or open files.
    has_work: bool,
    open_for: Duration,
    /// When the last message was received, since the connection was opened.
    last_message: Duration,
}

impl Activity {
    fn is_idle(self, settings: &Settings) -> bool {
        if !self.initialized {
            return self.open_for >= settings.initialize_grace;
        }
        let silent_for = self.open_for.saturating_sub(self.last_message);
        !self.has_work && silent_for >= settings.idle_connection
    }
}

impl Caller {
    /// Returns the caller for the session that a request names, which must be listed for it.
    pub(crate) fn for_session(self, session: Option<&str>) -> Result<Caller, RpcError> {
        let Some(id) = session else {
            return Ok(self);
        };
        if !self.connection.lists_sessions() {
            return Err(RpcError::out_of_scope(AccessScope::Admin));
        }
        let found = self.connection.server.engine.find_session(id);
        match found.filter(|session| self.connection.is_listed(session)) {
            Some(session) => Ok(Caller {
                session,
                cross_session: true,
                ..self
            }),
            None => Err(convert::resume_error(ResumeError::Gone, id)),
        }
    }
}

impl Link for Connection {
    fn probe(&self) {
        if !self.pingable || self.probing.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(me) = self.me.upgrade() else { return };
        let reads = self.read_counter.count();
        self.outbox.ping();
        let timeout = self.server.settings.probe_timeout;
        self.server.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = me.gone.cancelled() => {}
                // Received bytes may have been sent before the link broke, so this proves
                // nothing for later: the next rejected resume probes again.
                () = me.read_counter.changed_from(reads) => {}
                // The pong may be there, unread, while reads are paused.
                () = me.server.engine.sleep(timeout) => if !me.read_counter.is_paused() {
                    tracing::debug!(?timeout, "probe failed; dropping the connection");
                    // Treat the session as taken over, so that pending long polls return.
                    me.probe_failed.store(true, Ordering::Release);
                    me.replaced.cancel();
                }
            }
            me.probing.store(false, Ordering::Release);
        });
    }

    fn replaced(&self) {
        self.replaced.cancel();
    }

    fn adopt(&self, session: &Session, epoch: Epoch, process: &Process) {
        let encoder = ExecEventEncoder::new(process);
        self.feeds.open((session, epoch), process, None, encoder);
    }

    fn network_decided(&self, process: &str, decision: &NetworkDecision) {
        let params = NetworkPolicyDecision {
            process_id: process.to_owned(),
            decision: decision.clone(),
        };
        let mut message = Vec::new();
        let encoded = encode_notification(&mut message, NETWORK_POLICY_DECISION, &params);
        let is_sent = encoded.is_ok()
            && message.len() <= policy_requests::MAX_BYTES
            && self.outbox.try_send(OutgoingMessage::new(message));
        if !is_sent {
            tracing::debug!(process, "notification of a network decision dropped");
        }
    }

    fn decide_network(
        &self,
        process: &str,
        target: NetworkTarget,
    ) -> Option<oneshot::Receiver<NetworkAnswer>> {
        let params = NetworkPolicyRequestParams {
            process_id: process.to_owned(),
            request: target,
        };
        self.policy_requests.ask(&self.outbox, &params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_idle_without_initialize_work_or_messages() {
        let settings = Settings::default();
        let idle = |initialized, has_work, open_for, last_message| {
            let activity = Activity {
                initialized,
                has_work,
                open_for: Duration::from_secs(open_for),
                last_message: Duration::from_secs(last_message),
            };
            activity.is_idle(&settings)
        };
        assert!(!idle(false, false, 4, 0), "it may still initialize");
        assert!(idle(false, false, 5, 4));
        assert!(!idle(true, false, 100, 41), "it has sent a message");
        assert!(idle(true, false, 100, 40));
        assert!(!idle(true, true, 100, 0), "it has work");
    }
}
