//! One server of the pool: starts it, restarts it, and calls its tools.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use rmcp::model::{CallToolResult, JsonObject};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{restart_policy::RestartPolicy, status::State};
use crate::{
    CallError, Command, EndReason, LaunchError, Launcher, Limits, Progress, ServerDiagnostics,
    ServerFailure,
    config::{Environment, ServerConfig, TransportConfig},
    session::{Handshake, Session},
    streamable_http::HttpTransport,
};

/// A server with its state. The pool runs one task per server.
pub(super) struct ManagedServer {
    pub(super) name: String,
    pub(super) config: ServerConfig,
    limits: Limits,
    /// `None` for a remote server without a remote executor.
    launcher: Option<Launcher>,
    /// Written by the server's task only.
    state: watch::Sender<State>,
    /// Serializes calls to a server without support for parallel calls.
    call_permit: Option<Semaphore>,
}

impl ManagedServer {
    pub(super) fn new(
        name: String,
        config: ServerConfig,
        launcher: Option<Launcher>,
        limits: Limits,
    ) -> Self {
        ManagedServer {
            call_permit: (!config.parallel).then(|| Semaphore::new(1)),
            name,
            config,
            limits,
            launcher,
            state: watch::Sender::new(State::Starting),
        }
    }

    pub(super) fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Keeps the server running until it fails for good or `cancel` is cancelled.
    pub(super) async fn run(&self, cancel: CancellationToken) {
        let mut restarts = RestartPolicy::new(&self.limits);
        let last = tokio::select! {
            failure = self.keep_running(&mut restarts) => State::Failed(Arc::new(failure)),
            () = cancel.cancelled() => State::Cancelled,
        };
        let before = self.state.send_replace(last);
        if let State::Ready(session) = before {
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
                    self.state.send_replace(State::Ready(Arc::clone(&session)));
                    let reason = session.ended().await;
                    self.state.send_replace(State::Starting);
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
        let within = self.startup_timeout();
        let diagnostics = OnceLock::new();
        match timeout(within, self.try_open(&diagnostics)).await {
            Ok(opened) => opened,
            // Nothing was started, so the executor is unresponsive and not the server.
            Err(_)
                if diagnostics.get().is_none()
                    && self.config.environment == Environment::Remote =>
            {
                let attempt = "reaching the executor";
                let error = outpost_client::Error::TimedOut { attempt, within };
                Err(LaunchError::Executor(error).into())
            }
            Err(_) => Err(startup_timed_out(within, diagnostics.get())),
        }
    }

    async fn try_open(
        &self,
        diagnostics: &OnceLock<ServerDiagnostics>,
    ) -> Result<Session, ServerFailure> {
        let launcher = self
            .launcher
            .as_ref()
            .ok_or_else(|| ServerFailure::NoRemote {
                server: self.name.clone(),
            })?;
        let command = match &self.config.transport {
            TransportConfig::Stdio(command) => command,
            TransportConfig::Http(endpoint) => {
                let executor = launcher.executor().await?;
                let transport = HttpTransport::new(endpoint, executor, &self.limits)?;
                let diagnostics = diagnostics.get_or_init(|| transport.diagnostics()).clone();
                return Session::open(transport, diagnostics, Handshake::Auto, &self.limits).await;
            }
        };
        let auto = self.start(
            launcher,
            command,
            Handshake::Auto,
            &self.limits,
            diagnostics,
        );
        match auto.await {
            // Some servers of older MCP versions exit on an unknown request.
            Err(ServerFailure::Ended(EndReason::Exited { .. })) => {
                let diagnostics = OnceLock::new();
                let handshake = Handshake::Initialize;
                self.start(launcher, command, handshake, &self.limits, &diagnostics)
                    .await
            }
            // The server was slow to start, was mistaken for an older one, and isn't.
            Err(ServerFailure::Handshake(_))
                if diagnostics
                    .get()
                    .is_some_and(ServerDiagnostics::discovery_timed_out) =>
            {
                let diagnostics = OnceLock::new();
                let limits = Limits {
                    discovery: self.startup_timeout(),
                    ..self.limits.clone()
                };
                self.start(
                    launcher,
                    command,
                    Handshake::Discover,
                    &limits,
                    &diagnostics,
                )
                .await
            }
            other => other,
        }
    }

    async fn start(
        &self,
        launcher: &Launcher,
        command: &Command,
        handshake: Handshake,
        limits: &Limits,
        diagnostics: &OnceLock<ServerDiagnostics>,
    ) -> Result<Session, ServerFailure> {
        let transport = launcher.launch(&self.name, command, limits).await?;
        let diagnostics = diagnostics.get_or_init(|| transport.diagnostics()).clone();
        Session::open(transport, diagnostics, handshake, limits).await
    }

    /// Waits until the server is ready or has failed, and returns its session.
    pub(super) async fn session(&self) -> Result<Arc<Session>, CallError> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(State::is_settled).await;
        let server = self.name.clone();
        match settled.as_deref() {
            Ok(State::Ready(session)) => Ok(Arc::clone(session)),
            Ok(State::Failed(why)) => {
                let why = Arc::clone(why);
                Err(CallError::NotReady { server, why })
            }
            Ok(State::Starting | State::Cancelled) | Err(_) => Err(CallError::Stopped { server }),
        }
    }

    fn startup_timeout(&self) -> Duration {
        self.config.startup_timeout.unwrap_or(self.limits.startup)
    }

    pub(super) fn tool_timeout(&self) -> Duration {
        self.config.tool_timeout.unwrap_or(self.limits.tool)
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        progress: Option<&mpsc::Sender<Progress>>,
    ) -> Result<CallToolResult, CallError> {
        if !self.config.tools.allows(tool) {
            return Err(CallError::Disabled {
                server: self.name.clone(),
                tool: tool.to_owned(),
            });
        }
        // The wait is bounded: each earlier call has a timeout. The semaphore is never closed.
        let _permit = match &self.call_permit {
            Some(permit) => permit.acquire().await.ok(),
            None => None,
        };
        let session = self.session().await?;
        let within = self.tool_timeout();
        session.call(tool, arguments, progress, within).await
    }
}

fn startup_timed_out(within: Duration, diagnostics: Option<&ServerDiagnostics>) -> ServerFailure {
    let (skipped, first) = diagnostics
        .map(ServerDiagnostics::skipped)
        .unwrap_or_default();
    let line = first.or_else(|| diagnostics.and_then(ServerDiagnostics::last_stderr));
    ServerFailure::TimedOut {
        within,
        skipped,
        line,
    }
}
