//! Replaces a lost connection and resumes the session, as [`recovery`](super::recovery) decides.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use outpost_protocol::{Method, TerminateResult, code};
use tokio::{
    task::JoinSet,
    time::{sleep, sleep_until, timeout, timeout_at},
};

use super::{
    connection::{
        CallError, Connection,
        handshake::{SessionRequest, attempt_error, initialize},
        receiver,
    },
    process_table::{OVERLOAD_DELAY, ProcessTable, RemoteProcess, read_after, terminate_params},
    recovery::{AttemptError, Recovery, Step},
    session::{ConnectionState, Session, now},
};
use crate::Error;

/// Number of processes that catch up concurrently.
const CONCURRENT_READS: usize = 16;

/// Delay before a session is requested again that is still attached to another connection.
const ATTACHED_DELAY: Duration = Duration::from_millis(200);

/// Connects a session and keeps it connected until it fails or the executor is closed.
#[derive(Clone)]
pub(super) struct Reconnector {
    session: Arc<Session>,
    table: Arc<ProcessTable>,
}

impl Reconnector {
    pub(super) fn new(table: Arc<ProcessTable>) -> Self {
        Reconnector {
            session: Arc::clone(&table.session),
            table,
        }
    }

    /// Makes the first connection and starts the tasks that maintain it.
    pub(super) async fn connect(self) -> Result<(), Error> {
        let session = &self.session;
        let options = &session.options;
        let deadline = now() + options.limits.connect_timeout;
        let transport = session.dialer.dial().await;
        let transport = transport.map_err(|source| Error::Unreachable {
            address: session.dialer.name(),
            source: Arc::new(source),
        })?;
        let connection = session.next_connection();
        receiver::spawn(&self.table, &connection, transport);
        let initialize_result = loop {
            let request = match &options.resume {
                None => SessionRequest::New,
                Some(id) => SessionRequest::Resume {
                    id,
                    takeover: options.takeover,
                    from: BTreeMap::new(),
                },
            };
            match initialize(&connection, options, request).await {
                // The server may not have noticed yet that the previous connection is gone.
                Err(CallError::Rejected(error))
                    if error.code == code::SESSION_ATTACHED
                        && now() + ATTACHED_DELAY < deadline =>
                {
                    sleep(ATTACHED_DELAY).await;
                }
                response => break response?,
            }
        };
        session.opened(initialize_result);
        let table = Arc::clone(&self.table);
        session.tasks.spawn(table.run_acks());
        let tasks = session.tasks.clone();
        tasks.spawn(self.run(connection));
        Ok(())
    }

    async fn run(self, connection: Arc<Connection>) {
        let reason = tokio::select! {
            reason = self.keep_connected(connection) => reason,
            () = self.session.closing.cancelled() => "the executor was closed".into(),
        };
        self.session.fail(&reason);
        self.table.fail_all(&Error::Disconnected { reason });
    }

    /// Replaces the connection whenever it is lost. Returns the reason when it gives up.
    async fn keep_connected(&self, mut connection: Arc<Connection>) -> Arc<str> {
        let session = &self.session;
        let resumable = session.dialer.redials() && session.id().is_some();
        let timeout = session.options.limits.reconnect_timeout;
        let mut recovery = Recovery::connected(connection.id, timeout, resumable);
        loop {
            let loss = connection.closed().await;
            let step = recovery.lost(connection.id, &loss, now());
            if let Step::Dial { .. } = step {
                tracing::debug!(reason = loss.reason, "connection lost");
                session.state.send_replace(ConnectionState::Recovering);
            }
            match self.recover(&mut recovery, step).await {
                Ok(new) => connection = new,
                Err(reason) => return reason,
            }
        }
    }

    /// Performs the steps of the recovery until there is a connection or it gives up.
    async fn recover(
        &self,
        recovery: &mut Recovery,
        mut step: Step,
    ) -> Result<Arc<Connection>, Arc<str>> {
        let mut candidate: Option<Arc<Connection>> = None;
        loop {
            step = match (step, candidate.clone()) {
                (Step::Fail { reason }, candidate) => {
                    if let Some(connection) = candidate {
                        connection.broken.cancel();
                    }
                    return Err(reason);
                }
                (Step::Dial { at }, _) => {
                    if let Some(connection) = candidate.take() {
                        connection.broken.cancel();
                    }
                    sleep_until(at.into()).await;
                    match self.attempt(recovery, self.dial()).await {
                        Ok(connection) => {
                            candidate = Some(connection);
                            Step::Resume { at: now() }
                        }
                        Err(error) => recovery.failed(&error, now()),
                    }
                }
                (Step::Resume { at }, None) => Step::Dial { at },
                (Step::Resume { at }, Some(connection)) => {
                    sleep_until(at.into()).await;
                    match self.attempt(recovery, self.resume(&connection)).await {
                        Ok(()) => recovery.resumed(now()),
                        Err(error) => recovery.failed(&error, now()),
                    }
                }
                (Step::CatchUp, Some(connection)) => {
                    let deadline = recovery.deadline().unwrap_or_else(now);
                    match timeout_at(deadline.into(), self.catch_up(&connection)).await {
                        Ok(Ok(())) => recovery.caught_up(connection.id, now()),
                        Ok(Err(reason)) => {
                            let permanent = false;
                            let error = AttemptError::Unreachable { reason, permanent };
                            recovery.failed(&error, now())
                        }
                        Err(_) => recovery.timed_out(),
                    }
                }
                (Step::Finish | Step::Ignore, Some(connection)) => {
                    self.session.state.send_replace(ConnectionState::Connected);
                    self.terminate_late_orphans(&connection);
                    return Ok(connection);
                }
                (Step::CatchUp | Step::Finish | Step::Ignore, None) => Step::Dial { at: now() },
            };
        }
    }

    /// Runs an attempt with a timeout that ends no later than the recovery's deadline.
    async fn attempt<T>(
        &self,
        recovery: &Recovery,
        attempt: impl Future<Output = Result<T, AttemptError>>,
    ) -> Result<T, AttemptError> {
        let deadline = recovery.deadline();
        let left = deadline.map_or(Duration::ZERO, |deadline| {
            deadline.saturating_duration_since(now())
        });
        let within = left.min(self.session.options.limits.attempt_timeout);
        match timeout(within, attempt).await {
            Ok(outcome) => outcome,
            Err(_) => Err(AttemptError::Unreachable {
                reason: format!("no response within {within:?}"),
                permanent: false,
            }),
        }
    }

    /// Opens a connection and starts its receiver, so that output which arrives before the
    /// session is resumed can't fill the transport.
    async fn dial(&self) -> Result<Arc<Connection>, AttemptError> {
        let transport = self.session.dialer.dial().await;
        let transport = transport.map_err(|error| AttemptError::Unreachable {
            permanent: error.is_permanent(),
            reason: error.to_string(),
        })?;
        let connection = self.session.next_connection();
        receiver::spawn(&self.table, &connection, transport);
        Ok(connection)
    }

    async fn resume(&self, connection: &Connection) -> Result<(), AttemptError> {
        let Some(id) = self.session.id() else {
            return Err(AttemptError::Rejected {
                reason: "there is no session to resume".to_owned(),
            });
        };
        // Processes that close from here on are not in the request; they are acknowledged later.
        let from = self.table.resume_from();
        let request = SessionRequest::Resume {
            id,
            takeover: false,
            from: from.clone(),
        };
        let response = initialize(connection, &self.session.options, request).await;
        response.map_err(attempt_error)?;
        self.table.resumed(&from);
        Ok(())
    }

    /// Terminates orphaned processes, then reads the missed events of all others. Fails only if
    /// the connection does.
    async fn catch_up(&self, connection: &Arc<Connection>) -> Result<(), String> {
        self.terminate_orphans(connection).await?;
        if self.session.is_acked() {
            // The server sends all events after `resume_from`.
            return Ok(());
        }
        let mut reads = JoinSet::new();
        for process in self.table.followed() {
            if reads.len() >= CONCURRENT_READS
                && let Some(Ok(outcome)) = reads.join_next().await
            {
                outcome?;
            }
            let (this, connection) = (self.clone(), Arc::clone(connection));
            reads.spawn(async move { this.catch_up_process(&connection, &process).await });
        }
        while let Some(read) = reads.join_next().await {
            if let Ok(outcome) = read {
                outcome?;
            }
        }
        // Processes whose events are lost have become orphans.
        self.terminate_orphans(connection).await
    }

    async fn catch_up_process(
        &self,
        connection: &Connection,
        process: &Arc<RemoteProcess>,
    ) -> Result<(), String> {
        loop {
            let params = read_after(process.id(), process.last_seq());
            match connection.call(Method::ProcessRead, &params).await {
                Err(CallError::Lost(reason)) => return Err(reason),
                Err(CallError::Rejected(error)) if error.code == code::OVERLOADED => {
                    sleep(OVERLOAD_DELAY).await;
                }
                page => {
                    self.table.apply_page(process, page.map_err(Error::from));
                    return Ok(());
                }
            }
        }
    }

    /// Terminates orphans that were added after [`Self::terminate_orphans`] and before the
    /// connection was published.
    fn terminate_late_orphans(&self, connection: &Connection) {
        for id in self.table.pending_terminations() {
            connection.terminate_orphan(&terminate_params(&id));
        }
    }

    async fn terminate_orphans(&self, connection: &Connection) -> Result<(), String> {
        for id in self.table.pending_terminations() {
            let response: Result<TerminateResult, _> = connection
                .call(Method::ProcessTerminate, &terminate_params(&id))
                .await;
            if let Err(CallError::Lost(reason)) = response {
                return Err(reason);
            }
            self.table.termination_confirmed(&id);
        }
        Ok(())
    }
}
