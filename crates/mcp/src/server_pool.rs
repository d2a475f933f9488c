//! All configured MCP servers.
//!
//! Each server has a task that starts it, opens a session, and restarts it when the session has
//! ended, as the restart policy allows. Calls wait on the status of their server.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, atomic::Ordering},
};

use outpost_client::Executor;
use rmcp::{
    ClientLifecycleMode,
    model::{CallToolResult, JsonObject, ProgressNotificationParam, ProtocolVersion, Tool},
};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    CallError, Command, EndReason, ExecutorProvider, Executors, Limits, ProcessTransport,
    ServerDiagnostics, ServerFailure,
    config::{Environment, ServerConfig, TransportConfig},
    restart_policy::RestartPolicy,
    session::Session,
    streamable_http::HttpTransport,
};

/// The status of a server.
#[derive(Clone, Debug)]
pub enum ServerStatus {
    /// The server is starting or restarting.
    Starting,
    /// The server is ready.
    Ready(Arc<Session>),
    /// The server failed and is not restarted.
    Failed(Arc<ServerFailure>),
    /// The pool was closed.
    Cancelled,
}

impl ServerStatus {
    fn is_settled(&self) -> bool {
        !matches!(self, ServerStatus::Starting)
    }
}

/// All configured servers. Dropping the pool terminates them; [`ServerPool::close`] also
/// waits for that.
pub struct ServerPool {
    servers: BTreeMap<String, Arc<ManagedServer>>,
    cancel: CancellationToken,
    /// The servers' tasks.
    tasks: TaskTracker,
}

impl ServerPool {
    /// Starts all enabled servers concurrently. Must be called inside a tokio runtime.
    #[must_use]
    pub fn start(
        servers: BTreeMap<String, ServerConfig>,
        executors: &Executors,
        limits: &Limits,
    ) -> Self {
        let cancel = CancellationToken::new();
        let tasks = TaskTracker::new();
        let enabled = servers.into_iter().filter(|(_, config)| config.enabled);
        let servers = enabled.map(|(name, config)| {
            let server = Arc::new(ManagedServer {
                name: name.clone(),
                limits: Limits {
                    startup: config.startup_timeout.unwrap_or(limits.startup),
                    tool: config.tool_timeout.unwrap_or(limits.tool),
                    ..limits.clone()
                },
                provider: match config.environment {
                    Environment::Local => Some(Arc::clone(&executors.local)),
                    Environment::Remote => executors.remote.clone(),
                },
                status: watch::Sender::new(ServerStatus::Starting),
                call_permit: (!config.parallel).then(|| Semaphore::new(1)),
                config,
            });
            let (task_server, cancel) = (Arc::clone(&server), cancel.clone());
            tasks.spawn(async move { task_server.run(cancel).await });
            (name, server)
        });
        let servers = servers.collect();
        tasks.close();
        ServerPool {
            servers,
            cancel,
            tasks,
        }
    }

    /// Returns the status of each server by name.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<String, ServerStatus> {
        let servers = self.servers.values();
        servers
            .map(|server| (server.name.clone(), server.status.borrow().clone()))
            .collect()
    }

    /// Waits until every server is ready or has failed.
    pub async fn wait_started(&self) {
        for server in self.servers.values() {
            // The wait can't fail: the pool holds the sender.
            let mut status = server.status.subscribe();
            let _ = status.wait_for(ServerStatus::is_settled).await;
        }
    }

    /// Returns the status of a server, to wait for its changes.
    pub fn status(&self, server: &str) -> Result<watch::Receiver<ServerStatus>, CallError> {
        Ok(self.server(server)?.status.subscribe())
    }

    /// Returns the session with a server, once it is ready.
    pub async fn session(&self, server: &str) -> Result<Arc<Session>, CallError> {
        self.server(server)?.session().await
    }

    /// Lists the tools of a server that its configuration allows.
    pub async fn tools(&self, server: &str) -> Result<Vec<Tool>, CallError> {
        let server = self.server(server)?;
        let mut tools = server.session().await?.tools().await?;
        tools.retain(|tool| server.config.tools.allows(&tool.name));
        Ok(tools)
    }

    /// Calls a tool of a server, once the server is ready. Without support for parallel
    /// calls, earlier calls complete first. Dropping the future cancels the call.
    ///
    /// A call is not repeated if the server ends during it: it may have had effects.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: JsonObject,
        progress: Option<&mpsc::Sender<ProgressNotificationParam>>,
    ) -> Result<CallToolResult, CallError> {
        let server = self.server(server)?;
        if !server.config.tools.allows(tool) {
            return Err(CallError::Disabled {
                server: server.name.clone(),
                tool: tool.to_owned(),
            });
        }
        // The wait is bounded: each earlier call has a timeout. The semaphore is never closed.
        let _permit = match &server.call_permit {
            Some(permit) => permit.acquire().await.ok(),
            None => None,
        };
        let session = server.session().await?;
        session.call(tool, arguments, progress).await
    }

    /// Terminates all servers and waits for that.
    pub async fn close(&self) {
        self.cancel.cancel();
        self.tasks.wait().await;
    }

    fn server(&self, name: &str) -> Result<&Arc<ManagedServer>, CallError> {
        let server = self.servers.get(name);
        server.ok_or_else(|| CallError::UnknownServer {
            server: name.to_owned(),
        })
    }
}

impl Drop for ServerPool {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// The diagnostics of the first process that was started for a session.
type FirstDiagnostics = OnceLock<Arc<ServerDiagnostics>>;

/// A server with its status. The pool runs one task per server.
struct ManagedServer {
    name: String,
    config: ServerConfig,
    /// With the timeouts of the configuration.
    limits: Limits,
    /// `None` for a remote server without a remote executor.
    provider: Option<Arc<dyn ExecutorProvider>>,
    /// Written by the server's task only.
    status: watch::Sender<ServerStatus>,
    /// Serializes calls to a server without support for parallel calls.
    call_permit: Option<Semaphore>,
}

impl ManagedServer {
    /// Keeps the server running until it fails for good or `cancel` is cancelled.
    async fn run(&self, cancel: CancellationToken) {
        let mut restarts = RestartPolicy::new(&self.limits);
        let last = tokio::select! {
            failure = self.keep_running(&mut restarts) => ServerStatus::Failed(Arc::new(failure)),
            () = cancel.cancelled() => ServerStatus::Cancelled,
        };
        let before = self.status.send_replace(last);
        if let ServerStatus::Ready(session) = before {
            session.close().await;
        }
    }

    /// Starts and restarts the server. Returns when it has failed for good.
    async fn keep_running(&self, restarts: &mut RestartPolicy) -> ServerFailure {
        loop {
            let failure = match self.open().await {
                Ok(session) => {
                    let session = Arc::new(session);
                    restarts.on_ready(Instant::now());
                    self.status
                        .send_replace(ServerStatus::Ready(Arc::clone(&session)));
                    let reason = session.diagnostics.ended().await;
                    self.status.send_replace(ServerStatus::Starting);
                    session.close().await;
                    ServerFailure::Ended(reason)
                }
                Err(failure) => failure,
            };
            match restarts.on_failure(Instant::now()) {
                None => return failure,
                Some(delay) => {
                    tracing::warn!(server = self.name, %failure, ?delay, "restarting MCP server");
                    sleep(delay).await;
                }
            }
        }
    }

    /// Opens a session within the startup timeout.
    async fn open(&self) -> Result<Session, ServerFailure> {
        let within = self.limits.startup;
        let diagnostics = FirstDiagnostics::new();
        if let Ok(opened) = timeout(within, self.try_open(&diagnostics)).await {
            return opened;
        }
        let diagnostics = diagnostics.get();
        // Nothing was started, so the executor is unresponsive and not the server.
        if diagnostics.is_none() && self.config.environment == Environment::Remote {
            let attempt = "reaching the executor";
            let error = outpost_client::Error::TimedOut { attempt, within };
            return Err(error.into());
        }
        let (skipped, first) = diagnostics
            .map(|server| server.skipped())
            .unwrap_or_default();
        let line = first.or_else(|| diagnostics?.last_stderr());
        Err(ServerFailure::TimedOut {
            within,
            skipped,
            line,
        })
    }

    async fn try_open(&self, diagnostics: &FirstDiagnostics) -> Result<Session, ServerFailure> {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        let auto = ClientLifecycleMode::Auto {
            preferred_versions: preferred_versions.clone(),
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        let command = match &self.config.transport {
            TransportConfig::Stdio(command) => command,
            TransportConfig::Http(endpoint) => {
                let executor = self.executor().await?;
                let transport = HttpTransport::new(endpoint, executor, &self.limits)?;
                let diagnostics = Arc::clone(diagnostics.get_or_init(|| transport.diagnostics()));
                return Session::open(transport, diagnostics, auto, &self.limits).await;
            }
        };
        match self.start(command, auto, &self.limits, diagnostics).await {
            // Some servers of older MCP versions exit on an unknown request.
            Err(ServerFailure::Ended(EndReason::Exited { .. })) => {
                let initialize = ClientLifecycleMode::Initialize;
                self.start(command, initialize, &self.limits, &OnceLock::new())
                    .await
            }
            // The server was slow to start, was mistaken for an older one, and isn't.
            Err(ServerFailure::Handshake(_))
                if diagnostics
                    .get()
                    .is_some_and(|server| server.discovery_timed_out.load(Ordering::Relaxed)) =>
            {
                let limits = Limits {
                    discovery: self.limits.startup,
                    ..self.limits.clone()
                };
                let discover = ClientLifecycleMode::Discover { preferred_versions };
                self.start(command, discover, &limits, &OnceLock::new())
                    .await
            }
            other => other,
        }
    }

    async fn start(
        &self,
        command: &Command,
        lifecycle: ClientLifecycleMode,
        limits: &Limits,
        diagnostics: &FirstDiagnostics,
    ) -> Result<Session, ServerFailure> {
        let executor = self.executor().await?;
        let transport = ProcessTransport::launch(&self.name, command, &*executor, limits).await?;
        let diagnostics = Arc::clone(diagnostics.get_or_init(|| transport.diagnostics()));
        Session::open(transport, diagnostics, lifecycle, limits).await
    }

    async fn executor(&self) -> Result<Arc<dyn Executor>, ServerFailure> {
        let Some(provider) = &self.provider else {
            let server = self.name.clone();
            return Err(ServerFailure::NoRemote { server });
        };
        Ok(provider.executor().await?)
    }

    /// Waits until the server is ready or has failed, and returns its session.
    async fn session(&self) -> Result<Arc<Session>, CallError> {
        let mut status = self.status.subscribe();
        let wait_started = status.wait_for(ServerStatus::is_settled).await;
        let server = self.name.clone();
        match wait_started.as_deref() {
            Ok(ServerStatus::Ready(session)) => Ok(Arc::clone(session)),
            Ok(ServerStatus::Failed(why)) => {
                let why = Arc::clone(why);
                Err(CallError::NotReady { server, why })
            }
            Ok(ServerStatus::Starting | ServerStatus::Cancelled) | Err(_) => {
                Err(CallError::Stopped { server })
            }
        }
    }
}
