//! The session on a server: state that outlives a connection.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use outpost_journal as journal;
use outpost_protocol::{
    Empty, HostInfo, Method, ReceivedInitializeResult, ServerCapabilities, code,
};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::{OnceCell, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    DeliveryMode, Dialer, RemoteOptions,
    connection::{CallError, Connection},
};
use crate::Error;

/// State of the connection of a [`RemoteExecutor`](crate::RemoteExecutor).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// The connection works.
    Connected,
    /// Nothing was received for a while, although the server was pinged. Calls are still sent. The
    /// connection either works again, or is replaced when it has been silent for too long.
    Unresponsive,
    /// The connection is lost and is being replaced. Calls wait.
    Recovering,
    /// The connection can't be replaced. Every call fails.
    Failed {
        /// A description for people.
        reason: Arc<str>,
        /// A classification for programs.
        cause: ReconnectFailure,
    },
}

/// Why a connection can't be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconnectFailure {
    /// The connection is lost, or the server rejected a new one.
    Lost,
    /// Another connection has taken over the session.
    TakenOver,
    /// The server has announced that it shuts down, which ends its sessions.
    ShutDown,
}

/// A session and its current connection. Tasks that hold it end when `closing` is cancelled.
pub(super) struct Session {
    pub(super) options: RemoteOptions,
    pub(super) dialer: Arc<dyn Dialer>,
    pub(super) state: watch::Sender<ConnectionState>,
    /// The current connection, or a candidate for it.
    current: Mutex<Option<Arc<Connection>>>,
    /// The number of that connection. Events from older connections are ignored.
    current_number: AtomicU64,
    /// The server's response to the first `initialize`.
    pub(super) initialize_result: OnceLock<ReceivedInitializeResult>,
    host_info: OnceCell<HostInfo>,
    /// Makes generated ids differ from those of other clients of the same session.
    id_prefix: String,
    last_id: AtomicU64,
    /// Why the server ended the session, if it has said so.
    pub(super) ended_by_server: OnceLock<ReconnectFailure>,
    pub(super) tasks: TaskTracker,
    pub(super) closing: CancellationToken,
}

impl Session {
    pub(super) fn new(dialer: Arc<dyn Dialer>, options: RemoteOptions) -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        Session {
            options,
            dialer,
            state: watch::Sender::new(ConnectionState::Recovering),
            current: Mutex::default(),
            current_number: AtomicU64::new(0),
            initialize_result: OnceLock::new(),
            host_info: OnceCell::new(),
            id_prefix: random[..8].to_owned(),
            last_id: AtomicU64::new(0),
            ended_by_server: OnceLock::new(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Creates a connection that replaces the current one.
    pub(super) fn next_connection(&self) -> Arc<Connection> {
        let number = self.current_number.fetch_add(1, Ordering::AcqRel) + 1;
        let connection = Arc::new(Connection::new(number));
        *self.current.lock() = Some(Arc::clone(&connection));
        connection
    }

    pub(super) fn is_current(&self, connection: &Connection) -> bool {
        connection.number == self.current_number.load(Ordering::Acquire)
    }

    /// Returns the current connection. Waits while it is being replaced.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Error> {
        let mut state = self.state.subscribe();
        loop {
            let now = state.borrow_and_update().clone();
            match now {
                ConnectionState::Connected | ConnectionState::Unresponsive => {
                    let current = self.current.lock().clone();
                    // A lost connection is about to be replaced.
                    if let Some(connection) = current.filter(|current| !current.is_lost()) {
                        return Ok(connection);
                    }
                }
                ConnectionState::Failed { reason, .. } => {
                    return Err(Error::Disconnected { reason });
                }
                ConnectionState::Recovering => {}
            }
            if state.changed().await.is_err() {
                return Err(Error::disconnected("the executor was closed"));
            }
        }
    }

    /// Returns the current connection if the session is connected.
    pub(super) fn connection_now(&self) -> Option<Arc<Connection>> {
        let connected = matches!(
            *self.state.borrow(),
            ConnectionState::Connected | ConnectionState::Unresponsive
        );
        self.current.lock().clone().filter(|_| connected)
    }

    /// Reports whether the current connection receives anything.
    pub(super) fn set_responsive(&self, connection: &Connection, responsive: bool) {
        let (before, after) = if responsive {
            (ConnectionState::Unresponsive, ConnectionState::Connected)
        } else {
            (ConnectionState::Connected, ConnectionState::Unresponsive)
        };
        self.state.send_if_modified(|state| {
            let changes = *state == before && self.is_current(connection);
            if changes {
                *state = after;
            }
            changes
        });
    }

    /// Marks the session as failed.
    pub(super) fn fail(&self, reason: &Arc<str>) {
        let cause = self.ended_by_server.get().copied();
        let cause = cause.unwrap_or(ReconnectFailure::Lost);
        self.state.send_replace(ConnectionState::Failed {
            reason: Arc::clone(reason),
            cause,
        });
    }

    /// Stores the response to the first `initialize` and marks the session as connected.
    pub(super) fn opened(&self, initialize_result: ReceivedInitializeResult) {
        let _ = self.initialize_result.set(initialize_result);
        self.state.send_replace(ConnectionState::Connected);
    }

    /// Whether the server keeps events until they are acknowledged.
    pub(super) fn is_acked(&self) -> bool {
        self.options.delivery == DeliveryMode::AckedIfSupported && self.capabilities().acked
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.initialize_result.get()?.session_id.as_deref()
    }

    pub(super) fn capabilities(&self) -> ServerCapabilities {
        let result = self.initialize_result.get();
        result.map(|result| result.capabilities).unwrap_or_default()
    }

    /// Returns the limits of a process's event log.
    pub(super) fn log_limits(&self) -> journal::Limits {
        let limits = &self.options.limits;
        let window_bytes = if self.is_acked() {
            limits.window_bytes
        } else {
            limits.push_window_bytes
        };
        journal::Limits {
            retain_bytes: limits.retain_bytes,
            window_bytes,
            ..journal::Limits::default()
        }
    }

    /// Generates an id that is unique in the session. `kind` tells kinds of ids apart.
    pub(super) fn generate_id(&self, kind: &str) -> String {
        let number = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}-{kind}{number}", self.id_prefix)
    }

    /// Makes a request once. If the connection is lost before the response, it is unknown
    /// whether the request took effect, so it is not repeated.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, Error> {
        let connection = self.connection().await?;
        Ok(connection.call(method, params).await?)
    }

    /// Makes an idempotent request and repeats it until there is a response.
    pub(super) async fn call_retrying<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, Error> {
        loop {
            let connection = self.connection().await?;
            match connection.call(method, params).await {
                Err(CallError::Lost(_)) => {}
                response => return Ok(response?),
            }
        }
    }

    /// Describes the server's host. Requested at most once.
    pub(super) async fn host_info(&self) -> Result<HostInfo, Error> {
        let result = self.initialize_result.get();
        let announced = result.and_then(|result| result.environment_info.as_ref());
        if let Some(known) = announced.or_else(|| self.host_info.get()) {
            return self.connection().await.map(|_| known.clone());
        }
        let request = || self.call_retrying(Method::EnvironmentInfo, &Empty {});
        self.host_info.get_or_try_init(request).await.cloned()
    }

    /// Returns the server's working directory, against which relative paths are resolved.
    pub(super) async fn working_directory(&self) -> Result<PathBuf, Error> {
        let cwd = match self.host_info().await {
            Ok(info) => info.cwd,
            Err(Error::Rejected { code, .. }) if code == code::METHOD_NOT_FOUND => None,
            Err(error) => return Err(error),
        };
        cwd.map(|cwd| cwd.into_path()).ok_or(Error::NoDirectory)
    }
}

/// Ends the tasks of a session when the last user is dropped.
pub(super) struct SessionGuard {
    pub(super) session: Arc<Session>,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.session.closing.cancel();
        self.session.tasks.close();
    }
}

/// Fails unless the server announces a capability.
pub(super) fn require(announced: bool, capability: &'static str) -> Result<(), Error> {
    if announced {
        Ok(())
    } else {
        Err(Error::Unsupported { capability })
    }
}

/// Returns the runtime's time, which tests can pause.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
