//! Connects a session: the handshake, and the replacement of a lost connection as
//! [`recovery`](super::recovery) decides.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use outpost_protocol::{
    Delivery, Empty, INITIALIZED, InitializeParams, Method, ReceivedInitializeResult, RpcError,
    TerminateResult, code,
};
use tokio::{
    task::JoinSet,
    time::{sleep, sleep_until, timeout, timeout_at},
};

use super::{
    connection::{CallError, Connection, receiver},
    options::DeliveryMode,
    process::terminate_params,
    process_table::{OVERLOAD_DELAY, ProcessTable, RemoteProcess, read_after},
    recovery::{ATTACHED_DELAY, AttemptError, LossReason, Recovery, Retry},
    session::{ConnectionState, Session, now},
};
use crate::Error;

/// Number of processes that catch up concurrently.
const CONCURRENT_READS: usize = 16;

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

    /// Makes the first connection within the connect timeout, and starts the tasks that maintain it.
    pub(super) async fn connect(self) -> Result<(), Error> {
        let session = &self.session;
        let within = session.options.limits.connect_timeout;
        let mut attached = None;
        let opened = timeout(within, self.open(&mut attached)).await;
        let (connection, initialize_result) = opened.unwrap_or_else(|_| {
            // The server has answered all the time: the session is what is missing.
            Err(attached.map_or_else(
                || Error::TimedOut {
                    attempt: "connecting",
                    within,
                },
                |error| CallError::Rejected(error).into(),
            ))
        })?;
        session.opened(initialize_result);
        let table = Arc::clone(&self.table);
        session.tasks.spawn(table.run_acks());
        let tasks = session.tasks.clone();
        tasks.spawn(self.run(connection));
        Ok(())
    }

    /// Makes a connection and opens or resumes the session on it. Stores the rejection in `attached` while
    /// another connection has the session.
    async fn open(
        &self,
        attached: &mut Option<RpcError>,
    ) -> Result<(Arc<Connection>, ReceivedInitializeResult), Error> {
        let session = &self.session;
        let options = &session.options;
        let transport = session.dialer.dial().await;
        let transport = transport.map_err(|source| Error::Unreachable {
            address: session.dialer.name(),
            source: Arc::new(source),
        })?;
        let connection = session.next_connection();
        receiver::spawn(&self.table, &connection, transport);
        loop {
            let resume = options.resume.as_deref();
            let handshake = self.initialize(&connection, resume, options.takeover, BTreeMap::new());
            match handshake.await {
                // The server may not have noticed yet that the previous connection is gone.
                Err(CallError::Rejected(error)) if error.code == code::SESSION_ATTACHED => {
                    *attached = Some(error);
                    sleep(ATTACHED_DELAY).await;
                }
                response => return Ok((connection, response?)),
            }
        }
    }

    async fn run(self, connection: Arc<Connection>) {
        let reason = tokio::select! {
            Err(reason) = self.keep_connected(connection) => reason,
            () = self.session.closing.cancelled() => "the executor was closed".into(),
        };
        self.session.fail(&reason);
        self.table.fail_all(&Error::Disconnected { reason });
    }

    /// Replaces the connection whenever it is lost. Fails with the reason when it gives up.
    async fn keep_connected(
        &self,
        mut connection: Arc<Connection>,
    ) -> Result<Infallible, Arc<str>> {
        let session = &self.session;
        let resumable = session.dialer.redials() && session.id().is_some();
        let timeout = session.options.limits.reconnect_timeout;
        loop {
            let loss = connection.closed().await;
            let recovery = Recovery::begin(&loss, timeout, resumable, now())?;
            tracing::debug!(reason = loss.reason, "connection lost");
            session.state.send_replace(ConnectionState::Recovering);
            connection = self.recover(recovery).await?;
        }
    }

    /// Attempts to reconnect until there is a connection or the recovery gives up.
    async fn recover(&self, mut recovery: Recovery) -> Result<Arc<Connection>, Arc<str>> {
        let mut candidate = None;
        loop {
            let error = match self.attempt(&recovery, &mut candidate).await {
                Ok(connection) => {
                    self.session.state.send_replace(ConnectionState::Connected);
                    self.terminate_late_orphans(&connection);
                    return Ok(connection);
                }
                Err(error) => error,
            };
            let retry = recovery.failed(&error, now());
            if !matches!(retry, Ok(Retry::Resume { .. }))
                && let Some(connection) = candidate.take()
            {
                connection.broken.cancel();
            }
            let (Retry::Dial { at } | Retry::Resume { at }) = retry?;
            sleep_until(at.into()).await;
        }
    }

    /// Dials unless there is a candidate, resumes the session on it and reads missed events.
    async fn attempt(
        &self,
        recovery: &Recovery,
        candidate: &mut Option<Arc<Connection>>,
    ) -> Result<Arc<Connection>, AttemptError> {
        let connection = match candidate {
            Some(connection) => connection,
            None => candidate.insert(self.limit(recovery, self.dial()).await?),
        };
        self.limit(recovery, self.resume(connection)).await?;
        recovery.check_deadline(now())?;
        let catching_up = timeout_at(recovery.deadline.into(), self.catch_up(connection)).await;
        let caught_up = catching_up.map_err(|_| AttemptError::TimedOut)?;
        caught_up.map_err(|reason| AttemptError::Lost(LossReason::temporary(reason)))?;
        recovery.check_deadline(now())?;
        Ok(Arc::clone(connection))
    }

    /// Runs a step of an attempt with a timeout that ends no later than the recovery's deadline.
    async fn limit<T>(
        &self,
        recovery: &Recovery,
        step: impl Future<Output = Result<T, AttemptError>>,
    ) -> Result<T, AttemptError> {
        let left = recovery.deadline.saturating_duration_since(now());
        let within = left.min(self.session.options.limits.attempt_timeout);
        timeout(within, step).await.unwrap_or_else(|_| {
            let reason = format!("no response within {within:?}");
            Err(AttemptError::Lost(LossReason::temporary(reason)))
        })
    }

    /// Opens a connection and starts its receiver, so that output which arrives before the
    /// session is resumed can't fill the transport.
    async fn dial(&self) -> Result<Arc<Connection>, AttemptError> {
        let transport = self.session.dialer.dial().await;
        let transport = transport.map_err(|error| {
            AttemptError::Lost(LossReason {
                permanent: error.is_permanent(),
                reason: error.to_string(),
            })
        })?;
        let connection = self.session.next_connection();
        receiver::spawn(&self.table, &connection, transport);
        Ok(connection)
    }

    async fn resume(&self, connection: &Connection) -> Result<(), AttemptError> {
        let Some(id) = self.session.id() else {
            let loss = LossReason::permanent("there is no session to resume");
            return Err(AttemptError::Lost(loss));
        };
        // Processes that close from here on are not in the request; they are acknowledged later.
        let (from, others) = self.table.resume_from();
        let handshake = self.initialize(connection, Some(id), false, from.clone());
        let answer = handshake.await;
        answer.map_err(|error| attempt_error(error, connection.loss()))?;
        self.table.resumed(connection, &from, others);
        Ok(())
    }

    /// Performs the handshake, to open a session or to resume one after the events `from`. After
    /// a rejection, it may be repeated on the same connection.
    async fn initialize(
        &self,
        connection: &Connection,
        resume: Option<&str>,
        takeover: bool,
        from: BTreeMap<String, u64>,
    ) -> Result<ReceivedInitializeResult, CallError> {
        let options = &self.session.options;
        let params = InitializeParams {
            client_name: Some(options.client_name.clone()),
            session_label: options.session_label.clone().filter(|_| resume.is_none()),
            detached_ttl_ms: options.lease.into(),
            takeover: takeover && resume.is_some(),
            // Older servers ignore this and do not announce it in the response.
            delivery: Some(match options.delivery {
                DeliveryMode::AckedIfSupported => Delivery::Acked,
                DeliveryMode::Push => Delivery::Push,
            }),
            resume_from: from,
            resume_session_id: resume.map(str::to_owned),
            ..InitializeParams::default()
        };
        let response = connection.call(Method::Initialize, &params).await;
        let initialize_result = response.map_err(|error| redact_session(error, resume))?;
        connection.notify(INITIALIZED, &Empty {});
        Ok(initialize_result)
    }

    /// Terminates orphaned processes, then reads the missed events of all others. Fails only if
    /// the connection does.
    async fn catch_up(&self, connection: &Arc<Connection>) -> Result<(), String> {
        self.terminate_orphans(connection).await?;
        if self.session.is_acked() {
            // The server sends all events after `resume_from`.
            return Ok(());
        }
        // In tasks of their own: a panic in one leaves the session and the other processes alone.
        let mut reads = JoinSet::new();
        for process in self.table.followed() {
            if reads.len() >= CONCURRENT_READS
                && let Some(Ok(outcome)) = reads.join_next().await
            {
                outcome?;
            }
            let (this, connection) = (self.clone(), Arc::clone(connection));
            reads.spawn(async move { this.catch_up_process(&connection, process).await });
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
        process: Arc<RemoteProcess>,
    ) -> Result<(), String> {
        loop {
            let params = read_after(process.id(), process.last_seq());
            match connection.call(Method::ProcessRead, &params).await {
                Err(CallError::Lost(reason)) => return Err(reason),
                Err(CallError::Rejected(error)) if error.code == code::OVERLOADED => {
                    sleep(OVERLOAD_DELAY).await;
                }
                page => {
                    self.table.apply_page(&process, page.map_err(Error::from));
                    return Ok(());
                }
            }
        }
    }

    /// Terminates orphans that were added after [`Self::terminate_orphans`] and before the
    /// connection was published.
    fn terminate_late_orphans(&self, connection: &Connection) {
        for id in self.table.pending_terminations() {
            connection.terminate_orphan(id);
        }
    }

    async fn terminate_orphans(&self, connection: &Connection) -> Result<(), String> {
        for id in self.table.pending_terminations() {
            let response: Result<TerminateResult, _> = connection
                .call(Method::ProcessTerminate, &terminate_params(id.clone()))
                .await;
            if let Err(CallError::Lost(reason)) = response {
                return Err(reason);
            }
            self.table.termination_confirmed(&id);
        }
        Ok(())
    }
}

/// Classifies a failed handshake for the recovery, on a connection that may be lost.
fn attempt_error(error: CallError, loss: Option<LossReason>) -> AttemptError {
    AttemptError::Lost(match error {
        CallError::Rejected(error) if error.code == code::SESSION_ATTACHED => {
            return AttemptError::StillAttached;
        }
        CallError::Rejected(error) if error.code == code::OVERLOADED => {
            return AttemptError::Overloaded;
        }
        CallError::Lost(reason) => loss.unwrap_or_else(|| LossReason::temporary(reason)),
        CallError::Rejected(error) => LossReason::permanent(error.to_string()),
        CallError::InvalidResponse(method, error) => {
            LossReason::permanent(format!("invalid response to {method}: {error}"))
        }
    })
}

/// Shortens the session id in an error. Servers name the session that they reject, but the id is
/// a secret: it grants access to the session.
fn redact_session(error: CallError, session: Option<&str>) -> CallError {
    match (error, session) {
        (CallError::Rejected(mut error), Some(id)) if !id.is_empty() => {
            let shown: String = id.chars().take(8).collect();
            error.message = error.message.replace(id, &format!("{shown}…"));
            CallError::Rejected(error)
        }
        (error, _) => error,
    }
}
