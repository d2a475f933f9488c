//! The server: state shared by all connections.

use std::{borrow::Cow, sync::Arc, time::Duration};

use outpost_engine::{Engine, Peer};
use outpost_fetch::Fetcher;
use outpost_rpc::{Framing, MemoryBudget, ReadHalf, Role, WriteHalf};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Host, Settings,
    auth::{Client, Identity, SocketOwners},
    connection,
    connection_limiter::{ConnectionLimiter, ConnectionPermit},
    file_threads::FileThreads,
    http_sockets::HttpSockets,
    peer_memories::PeerMemories,
    watch_limiter::WatchLimiter,
};

/// How long the exits of processes that were killed may take at the end.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the last lines of the audit log may take after that.
const AUDIT_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A running server. Clones share it.
#[derive(Clone)]
pub struct Server {
    pub(crate) state: Arc<ServerState>,
}

/// State shared by all connections.
pub(crate) struct ServerState {
    pub(crate) engine: Engine,
    pub(crate) settings: Settings,
    pub(crate) host: Host,
    /// Performs `http/request`.
    pub(crate) fetcher: Fetcher,
    /// One permit per open connection.
    pub(crate) connection_limiter: ConnectionLimiter,
    /// Accepted sockets whose HTTP request is not yet answered.
    pub(crate) http_sockets: HttpSockets,
    /// Finds the users of clients on loopback.
    pub(crate) socket_owners: SocketOwners,
    /// Memory of the messages of all connections.
    pub(crate) memory: PeerMemories,
    /// Keeps file operations from using up the runtime's blocking threads.
    pub(crate) file_threads: FileThreads,
    pub(crate) watch_limiter: Arc<WatchLimiter>,
    /// The tasks of all connections.
    pub(crate) tasks: TaskTracker,
    /// Asks the followers of credential files to read them again.
    pub(crate) reload_requests: watch::Sender<()>,
    /// Cancelled at shutdown: listeners stop, connections close.
    pub(crate) ending: CancellationToken,
}

/// A byte stream that carries messages, and the bytes already read from it.
pub(crate) struct Transport {
    pub(crate) read: ReadHalf,
    pub(crate) write: WriteHalf,
    pub(crate) framing: Framing,
    pub(crate) early: bytes::Bytes,
    pub(crate) peer: Peer,
    /// The address of the client, or the kind of its transport.
    pub(crate) address: String,
    /// The client, if it has a token or a certificate.
    pub(crate) identity: Option<Identity>,
    /// `None` for connections without a listener.
    pub(crate) permit: Option<ConnectionPermit>,
}

/// Outcome of serving a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// Either side closed it, or the transport failed.
    Closed,
    /// Another connection took over its session. On stdio the peer is not informed.
    Replaced,
}

impl ServerState {
    /// Records in the audit log that a client was refused before it had a principal. Clients without credentials
    /// cannot fill the log: an address that is refused often has few lines.
    pub(crate) fn record_refusal(&self, client: &Client, reason: Cow<'_, str>) {
        if let Some(audit) = &self.settings.audit
            && let Some(count) = self.settings.auth.record_refusal(client.peer())
        {
            audit.record_refusal(&client.address(), reason, count);
        }
    }
}

impl Server {
    /// Creates a server without listeners.
    #[must_use]
    pub fn new(engine: Engine, host: Host, settings: Settings) -> Self {
        Server {
            state: Arc::new(ServerState {
                connection_limiter: ConnectionLimiter::new(
                    settings.max_connections,
                    settings.owner_connections,
                ),
                http_sockets: HttpSockets::new(settings.max_http_sockets),
                socket_owners: SocketOwners::default(),
                memory: PeerMemories::new(MemoryBudget::new(
                    settings.message_memory_bytes,
                    settings.admission_timeout,
                )),
                file_threads: FileThreads::new(&settings),
                watch_limiter: WatchLimiter::new(&settings),
                engine,
                settings,
                host,
                fetcher: Fetcher::default(),
                tasks: TaskTracker::new(),
                reload_requests: watch::Sender::default(),
                ending: CancellationToken::new(),
            }),
        }
    }

    /// Waits until the server has been idle for `span`: no connection, and no process that
    /// is starting, running or still readable.
    pub async fn idle_for(&self, span: Duration) {
        self.state.engine.activity().idle_for(span).await;
    }

    /// Measures the time that the server does not run, until it shuts down, so that leases and silent peers
    /// are not held to it.
    pub async fn measure_stops(&self) {
        self.state.engine.measure_stops().await;
    }

    /// Serves one stream of lines until its input ends, or until another connection takes
    /// over its session.
    pub async fn serve_lines(&self, read: ReadHalf, write: WriteHalf) -> ConnectionEnd {
        self.serve(read, write, Framing::Lines, Peer::Unverified)
            .await
    }

    /// Serves one stream of WebSocket frames after the opening handshake. For tests and for
    /// custom listeners.
    pub async fn serve_websocket(&self, read: ReadHalf, write: WriteHalf, peer: Peer) {
        self.serve(read, write, Framing::WebSocket(Role::Server), peer)
            .await;
    }

    async fn serve(
        &self,
        read: ReadHalf,
        write: WriteHalf,
        framing: Framing,
        peer: Peer,
    ) -> ConnectionEnd {
        let _active = self.state.engine.activity().track();
        let transport = Transport {
            read,
            write,
            framing,
            early: bytes::Bytes::new(),
            peer,
            address: match framing {
                Framing::Lines => "stdio",
                Framing::WebSocket(_) => "stream",
            }
            .to_owned(),
            identity: None,
            permit: None,
        };
        connection::run(Arc::clone(&self.state), transport).await
    }

    /// Shuts down: stops listeners, closes connections with code 1001 and terminates all
    /// processes. Returns whether everything ended within [`Server::shutdown_timeout`].
    pub async fn shutdown(&self) -> bool {
        self.end(self.state.settings.shutdown_timeout).await
    }

    /// Ends everything. Returns whether that was done in time.
    async fn end(&self, within: Duration) -> bool {
        self.state.ending.cancel();
        let engine = self.state.engine.shutdown(within);
        self.state.tasks.close();
        let connections = tokio::time::timeout(within, self.state.tasks.wait());
        let (processes_gone, connections_gone) = tokio::join!(engine, connections);
        processes_gone && connections_gone.is_ok()
    }

    /// Writes the last lines of the audit log, after [`Server::shutdown`] or [`Server::kill_all`]. Logs how
    /// many cannot be written.
    pub async fn finish_audit_log(&self) {
        let Some(audit) = self.state.settings.audit.clone() else {
            return;
        };
        // The exits of the processes that were killed are among the last lines.
        self.end(KILL_TIMEOUT).await;
        let flushed = tokio::task::spawn_blocking(move || audit.flush(AUDIT_FLUSH_TIMEOUT));
        if let Ok(lines @ 1..) = flushed.await {
            tracing::error!(lines, "the last lines of the audit log are not written");
        }
    }

    /// Kills every process without a grace period.
    pub fn kill_all(&self) {
        self.state.engine.kill_all();
    }

    /// Returns the time limit of [`Server::shutdown`].
    #[must_use]
    pub fn shutdown_timeout(&self) -> Duration {
        self.state.settings.shutdown_timeout
    }
}
