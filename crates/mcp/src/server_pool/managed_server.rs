//! One server of the pool: starts it, restarts it, and provides its session.

use std::sync::{Arc, OnceLock};

use outpost_client::Executor;
use rmcp::{ClientLifecycleMode, model::ProtocolVersion};
use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::restart_policy::RestartPolicy;
use crate::{
    CallError, Command, EndReason, ExecutorProvider, LaunchError, Limits, ProcessTransport,
    ServerDiagnostics, ServerFailure,
    config::{Environment, ServerConfig, TransportConfig},
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
    pub(super) fn is_settled(&self) -> bool {
        !matches!(self, ServerStatus::Starting)
    }
}

/// The diagnostics of the first process that was started for a session.
type FirstDiagnostics = OnceLock<Arc<ServerDiagnostics>>;

/// A server with its status. The pool runs one task per server.
pub(super) struct ManagedServer {
    pub(super) name: String,
    pub(super) config: ServerConfig,
    /// With the timeouts of the configuration.
    limits: Limits,
    /// `None` for a remote server without a remote executor.
    provider: Option<Arc<dyn ExecutorProvider>>,
    /// Written by the server's task only.
    pub(super) status: watch::Sender<ServerStatus>,
    /// Serializes calls to a server without support for parallel calls.
    pub(super) call_permit: Option<Semaphore>,
}

impl ManagedServer {
    pub(super) fn new(
        name: String,
        config: ServerConfig,
        provider: Option<Arc<dyn ExecutorProvider>>,
        limits: &Limits,
    ) -> Self {
        ManagedServer {
            call_permit: (!config.parallel).then(|| Semaphore::new(1)),
            name,
            limits: Limits {
                startup: config.startup_timeout.unwrap_or(limits.startup),
                tool: config.tool_timeout.unwrap_or(limits.tool),
                ..limits.clone()
            },
            config,
            provider,
            status: watch::Sender::new(ServerStatus::Starting),
        }
    }

    /// Keeps the server running until it fails for good or `cancel` is cancelled.
    pub(super) async fn run(&self, cancel: CancellationToken) {
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
                    let reason = session.ended().await;
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
            return Err(LaunchError::Executor(error).into());
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
                let diagnostics = diagnostics.get_or_init(|| transport.diagnostics());
                let diagnostics = Arc::clone(diagnostics);
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
                    .is_some_and(|server| server.discovery_timed_out()) =>
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
        Ok(provider.executor().await.map_err(LaunchError::from)?)
    }

    /// Waits until the server is ready or has failed, and returns its session.
    pub(super) async fn session(&self) -> Result<Arc<Session>, CallError> {
        let mut status = self.status.subscribe();
        let settled = status.wait_for(ServerStatus::is_settled).await;
        let server = self.name.clone();
        match settled.as_deref() {
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
