//! The remote executor.

use std::{path::PathBuf, sync::Arc, time::Duration};

use outpost_journal::Seq;
use outpost_protocol::{
    Empty, EndedProcess, HostInfo, ListResult, Method, ProcessEntry, ServerCapabilities,
    ServerInfo, SessionCloseParams, SessionCloseResult, SessionEntry, SessionLeaseParams,
    SessionLeaseResult, SessionListResult, StartParams,
};
use tokio::{runtime::Handle as Runtime, sync::watch};

use super::{
    ConnectionState, Dialer, Lease, ProcessPeek, RemoteOptions,
    connection::{
        dial::UrlDialer,
        launch::{LaunchDialer, RelayDialer},
    },
    http,
    process::RemoteBackend,
    process_table::{ProcessTable, RemoteProcess, StartGuard},
    reconnector::Reconnector,
    session::{Session, SessionGuard, require},
};
use crate::{Error, Executor, Files, HttpRequest, HttpResponse, Pending, Process, Start};

/// Runs processes on a server. Clones refer to the same session.
///
/// When the last clone and all handles of its processes are dropped, the connection is closed.
/// Processes that were not terminated continue as long as the session's [`Lease`](crate::Lease)
/// allows. Another client can resume the session by its [`session_id`](Self::session_id).
///
/// If the connection is lost, it is replaced and the session is resumed in the background;
/// handles and streams remain valid, and calls wait meanwhile.
#[derive(Clone)]
pub struct RemoteExecutor {
    guard: Arc<SessionGuard>,
    table: Arc<ProcessTable>,
}

impl RemoteExecutor {
    /// Connects to `ws://HOST:PORT`, `wss://HOST:PORT` or `unix:///PATH`.
    pub async fn connect(url: &str, options: RemoteOptions) -> Result<Self, Error> {
        let dialer = UrlDialer {
            url: url.to_owned(),
            tls: options.tls.clone(),
            token: options.token.clone(),
        };
        Self::with_dialer(Arc::new(dialer), options).await
    }

    /// Launches a server and connects to its standard input and output.
    ///
    /// The server and everything that it runs end with the executor. Such a connection can't be
    /// replaced. The server is in the caller's process group, so it also gets signals that are
    /// typed at the terminal, unless the command prevents that.
    pub async fn launch(
        command: std::process::Command,
        options: RemoteOptions,
    ) -> Result<Self, Error> {
        Self::with_dialer(Arc::new(LaunchDialer::new(command)), options).await
    }

    /// Connects through a command that relays its standard input and output to a server's socket, such
    /// as ssh. It is launched again whenever the connection is lost; then `command` is called with `true`,
    /// and what it starts should ask nothing at the terminal. `name` names the server in errors.
    pub async fn relay(
        command: impl Fn(bool) -> std::process::Command + Send + Sync + 'static,
        name: impl Into<String>,
        options: RemoteOptions,
    ) -> Result<Self, Error> {
        let dialer = RelayDialer::new(command, name.into());
        Self::with_dialer(Arc::new(dialer), options).await
    }

    /// Connects with a custom [`Dialer`].
    pub async fn with_dialer(
        dialer: Arc<dyn Dialer>,
        options: RemoteOptions,
    ) -> Result<Self, Error> {
        let session = Arc::new(Session::new(dialer, options));
        let table = Arc::new(ProcessTable::new(Arc::clone(&session)));
        // Dropping the future drops the guard, which ends all tasks.
        let guard = Arc::new(SessionGuard { session });
        let reconnector = Reconnector::new(Arc::clone(&table));
        reconnector.connect().await?;
        Ok(RemoteExecutor { guard, table })
    }

    /// Returns the session's id, with which another client can resume the session. The id is a
    /// secret. `None` if the server has no sessions.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.session().id()
    }

    /// Returns the extensions that the server announces.
    #[must_use]
    pub fn capabilities(&self) -> ServerCapabilities {
        self.session().capabilities()
    }

    /// Returns the name and version of the server, if it tells them.
    #[must_use]
    pub fn server_info(&self) -> Option<&ServerInfo> {
        self.session().initialize_result.get()?.server_info.as_ref()
    }

    /// Returns a receiver of the connection's state.
    #[must_use]
    pub fn connection_state(&self) -> watch::Receiver<ConnectionState> {
        self.session().state.subscribe()
    }

    /// Waits until the session is connected. Starts whose response was lost have been terminated
    /// by then. Fails if the connection can't be replaced.
    pub async fn wait_connected(&self) -> Result<(), Error> {
        self.session().connection().await.map(drop)
    }

    /// Lists the sessions that this client may use: all of the server for its owner, those of its principal
    /// for another client. The server must announce `sessionList`.
    pub async fn sessions(&self) -> Result<Vec<SessionEntry>, Error> {
        require(self.capabilities().session_list, "sessionList")?;
        let session = self.session();
        let list: SessionListResult = session
            .call_retrying(Method::SessionList, &Empty {})
            .await?;
        Ok(list.sessions)
    }

    /// Lists the processes that a killed server had left, and that this server killed when it started.
    /// Only for the owner of the server, which must announce `sessionList`.
    pub async fn ended_at_start(&self) -> Result<Vec<EndedProcess>, Error> {
        require(self.capabilities().session_list, "sessionList")?;
        let session = self.session();
        let list: SessionListResult = session
            .call_retrying(Method::SessionList, &Empty {})
            .await?;
        Ok(list.ended_at_start)
    }

    /// Closes this session, terminates its processes and waits until they have ended. The server
    /// must announce `processList`.
    pub async fn close_session(&self) -> Result<(), Error> {
        require(self.capabilities().process_list, "processList")?;
        let closed = self.session().call(Method::SessionClose, &Empty {}).await?;
        // The server sends no more events of these processes.
        self.table
            .fail_all(&Error::disconnected("the session was closed"));
        all_gone(closed)
    }

    /// Sets how long the session lasts without a connection, and returns its previous lease.
    /// `ServerDefault` changes nothing. A lease of the options is set again by each reconnect. The
    /// server must announce `processList`.
    pub async fn set_lease(&self, lease: Lease) -> Result<Lease, Error> {
        require(self.capabilities().process_list, "processList")?;
        let params = SessionLeaseParams {
            detached_ttl_ms: lease.into(),
        };
        let session = self.session();
        let before: SessionLeaseResult = session.call(Method::SessionLease, &params).await?;
        Ok(match before.detached_ttl_ms {
            Some(millis) => Lease::For(Duration::from_millis(millis)),
            None => Lease::UntilClosed,
        })
    }

    /// Sets a lease like [`set_lease`](Self::set_lease), and repeats the request if the connection
    /// is lost. Returns no previous lease: a repeated request would return the new one.
    pub async fn restore_lease(&self, lease: Lease) -> Result<(), Error> {
        require(self.capabilities().process_list, "processList")?;
        let params = SessionLeaseParams {
            detached_ttl_ms: lease.into(),
        };
        let session = self.session();
        let set = session.call_retrying(Method::SessionLease, &params);
        set.await.map(|_: SessionLeaseResult| ())
    }

    /// Closes another session, terminates its processes and waits until they have ended. Only for
    /// the owner of the server, which must announce `sessionList`.
    pub async fn end_session(&self, session_id: &str) -> Result<(), Error> {
        require(self.capabilities().session_list, "sessionList")?;
        let params = SessionCloseParams {
            session_id: Some(session_id.to_owned()),
        };
        all_gone(self.session().call(Method::SessionClose, &params).await?)
    }

    /// Returns access to a process without following it. With a `session_id`, the process of
    /// another session, only for the owner of the server.
    #[must_use]
    pub fn inspect(&self, session_id: Option<&str>, process_id: &str) -> ProcessPeek {
        ProcessPeek {
            guard: Arc::clone(&self.guard),
            session_id: session_id.map(str::to_owned),
            process_id: process_id.to_owned(),
        }
    }

    fn session(&self) -> &Session {
        &self.guard.session
    }

    async fn start_process(&self, start: Start) -> Result<Process, Error> {
        let session = self.session();
        require_start(&start.params, session.capabilities())?;
        let base = if start.cwd.is_absolute() {
            PathBuf::new()
        } else {
            session.working_directory().await?
        };
        let generated_id = start.id.is_none();
        let params = start.into_params(&base, || session.generate_id(""));
        let guard = StartGuard::new(&self.table, &params.process_id, generated_id)?;
        let connection = session.connection().await?;
        connection.outbox.wait_below_limit().await;
        // If the response is lost, the process is terminated after the reconnect.
        let started = guard.start(&connection, &params).await;
        let process = started.map_err(|error| Error::from(error).of_start())?;
        Ok(self.handle(&process, false))
    }

    /// Attaches to a process. Concurrent calls for the same process share one read.
    async fn attach_to(&self, id: String, after: Seq) -> Result<Process, Error> {
        let (process, new) = self.table.get_or_attach(&id, after);
        // The first handle of a process that is being started belongs to its starter.
        let handle = (!process.started_here).then(|| self.handle(&process, true));
        if new {
            self.table.read_missing(&process);
        }
        process.wait_started().await?;
        Ok(handle.unwrap_or_else(|| self.handle(&process, true)))
    }

    fn handle(&self, process: &Arc<RemoteProcess>, detached: bool) -> Process {
        Process::of(&process.log, detached, Runtime::current(), || {
            Arc::new(RemoteBackend {
                peek: self.inspect(None, process.id()),
                table: Arc::clone(&self.table),
                process: Arc::clone(process),
            })
        })
    }
}

impl Executor for RemoteExecutor {
    fn start(&self, start: Start) -> Pending<'_, Process> {
        Box::pin(self.start_process(start))
    }

    fn attach(&self, id: &str, after_seq: u64) -> Pending<'_, Process> {
        Box::pin(self.attach_to(id.to_owned(), Seq(after_seq)))
    }

    fn processes(&self) -> Pending<'_, Vec<ProcessEntry>> {
        Box::pin(async {
            require(self.capabilities().process_list, "processList")?;
            let session = self.session();
            let list: ListResult = session
                .call_retrying(Method::ProcessList, &Empty {})
                .await?;
            Ok(list.processes)
        })
    }

    fn environment(&self) -> Pending<'_, HostInfo> {
        Box::pin(self.session().host_info())
    }

    fn files(&self) -> Files {
        Files::new(Arc::clone(&self.guard) as Arc<_>)
    }

    fn http(&self, request: HttpRequest) -> Pending<'_, HttpResponse> {
        Box::pin(http::request(&self.guard, request))
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async {
            let session = self.session();
            session.closing.cancel();
            session.tasks.close();
            session.tasks.wait().await;
            Ok(())
        })
    }
}

/// Checks that the server announces what a start needs.
fn require_start(params: &StartParams, capabilities: ServerCapabilities) -> Result<(), Error> {
    if params.size.is_some() {
        require(capabilities.resize, "resize")?;
    }
    if params.timeout_ms.is_some() {
        require(capabilities.timeouts, "timeouts")?;
    }
    if params.kill_grace_ms.is_some() {
        require(capabilities.terminate_tree, "terminateTree")?;
    }
    if params.limits.is_some() {
        require(capabilities.limits, "limits")?;
    }
    // A server that does not know it would ignore it.
    if params.network.is_some() {
        require(capabilities.network_policies, "networkPolicies")?;
    }
    Ok(())
}

/// Fails if processes of a closed session were not seen to end.
fn all_gone(closed: SessionCloseResult) -> Result<(), Error> {
    if closed.still_alive.is_empty() {
        return Ok(());
    }
    Err(Error::StillAlive {
        ids: closed.still_alive,
    })
}
