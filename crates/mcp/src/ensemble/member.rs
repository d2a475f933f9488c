//! One server, looked after.

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

use super::{revival::Revival, status::State};
use crate::{
    Account, CallError, Command, Failure, Fault, LaunchError, Launcher, Limits, Progress,
    config::{Environment, Reach, ServerConfig},
    session::{Opening, Session},
    web::WebTransport,
};

/// One server of an ensemble.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) config: ServerConfig,
    limits: Limits,
    /// None where it is to run remotely and there is nowhere to do that.
    launcher: Option<Arc<dyn Launcher>>,
    /// Written by the member's task alone.
    state: watch::Sender<State>,
    /// Whose turn it is, where there is one at a time.
    turn: Option<Semaphore>,
}

impl Member {
    pub(super) fn new(
        name: String,
        config: ServerConfig,
        launcher: Option<Arc<dyn Launcher>>,
        limits: Limits,
    ) -> Self {
        Member {
            turn: (!config.parallel).then(|| Semaphore::new(1)),
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

    /// Starts the server, again and again, until nobody wants it.
    pub(super) async fn live(&self, unwanted: CancellationToken) {
        let mut revival = Revival::new(&self.limits);
        let last = tokio::select! {
            failure = self.keep_alive(&mut revival) => State::Failed(Arc::new(failure)),
            () = unwanted.cancelled() => State::Cancelled,
        };
        let before = self.state.send_replace(last);
        if let State::Ready(session) = before {
            session.close().await;
        }
    }

    /// Ends when the server is given up.
    async fn keep_alive(&self, revival: &mut Revival) -> Failure {
        loop {
            let failure = match self.open().await {
                Ok(session) => {
                    let session = Arc::new(session);
                    revival.ready(Instant::now());
                    let ready = State::Ready(Arc::clone(&session));
                    self.state.send_replace(ready);
                    let fault = session.ended().await;
                    self.state.send_replace(State::Starting);
                    session.close().await;
                    Failure::Ended(fault)
                }
                Err(failure) => failure,
            };
            match revival.died(Instant::now()) {
                None => return failure,
                Some(pause) => {
                    tracing::warn!(server = self.name, %failure, "starting it again");
                    sleep(pause).await;
                }
            }
        }
    }

    /// A session within the time there is for that.
    async fn open(&self) -> Result<Session, Failure> {
        let within = self.startup_timeout();
        let account = OnceLock::new();
        match timeout(within, self.attempt(&account)).await {
            Ok(opened) => opened,
            // Nothing was started there, so it isn't the server that is silent.
            Err(_) if account.get().is_none() && self.config.environment == Environment::Remote => {
                let attempt = "reaching the executor";
                let silent = outpost_client::Error::TimedOut { attempt, within };
                Err(LaunchError::Place(silent).into())
            }
            Err(_) => Err(overdue(within, account.get())),
        }
    }

    async fn attempt(&self, account: &OnceLock<Account>) -> Result<Session, Failure> {
        let launcher = self.launcher.as_deref().ok_or_else(|| Failure::NoRemote {
            server: self.name.clone(),
        })?;
        let command = match &self.config.reach {
            Reach::Stdio(command) => command,
            Reach::Http(endpoint) => {
                let place = launcher.place().await?;
                let transport = WebTransport::new(endpoint, place, &self.limits)?;
                let account = account.get_or_init(|| transport.account()).clone();
                return Session::open(transport, account, Opening::Newest, &self.limits).await;
            }
        };
        let first = self.started(launcher, command, Opening::Newest, &self.limits, account);
        match first.await {
            // Some old servers end when they are asked something they don't know.
            Err(Failure::Ended(Fault::Exited { .. })) => {
                let account = OnceLock::new();
                let older = self.started(launcher, command, Opening::Older, &self.limits, &account);
                older.await
            }
            // It took its time to start, was taken for an old one, and isn't.
            Err(Failure::Handshake(_)) if account.get().is_some_and(Account::is_undiscovered) => {
                let account = OnceLock::new();
                let patient = Limits {
                    discovery: self.startup_timeout(),
                    ..self.limits.clone()
                };
                let newest =
                    self.started(launcher, command, Opening::NewestOnly, &patient, &account);
                newest.await
            }
            other => other,
        }
    }

    async fn started(
        &self,
        launcher: &dyn Launcher,
        command: &Command,
        opening: Opening,
        limits: &Limits,
        account: &OnceLock<Account>,
    ) -> Result<Session, Failure> {
        let transport = launcher.launch(&self.name, command, limits).await?;
        let account = account.get_or_init(|| transport.account()).clone();
        Session::open(transport, account, opening, limits).await
    }

    /// The session, as soon as it is known whether there is one.
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
        // Those before us have as much time as we have, so this has an end.
        let _turn = match &self.turn {
            // Nobody closes it.
            Some(turn) => turn.acquire().await.ok(),
            None => None,
        };
        let session = self.session().await?;
        let within = self.tool_timeout();
        session.call(tool, arguments, progress, within).await
    }
}

/// What is known of a server that took too long.
fn overdue(within: Duration, account: Option<&Account>) -> Failure {
    let (skipped, first) = account.map(Account::skipped).unwrap_or_default();
    let line = first.or_else(|| account.and_then(Account::said));
    Failure::TimedOut {
        within,
        skipped,
        line,
    }
}
