//! The engine: all sessions and processes of a server.

mod expire_closed;
mod file_workers;
mod sessions;
mod start_retries;

use expire_closed::expire_closed;
pub use file_workers::WorkerExit;
pub use sessions::Resume;
use start_retries::StartRetries;

use std::{collections::HashMap, sync::Arc, time::Duration};

use outpost_journal::Journal;
use outpost_process::{Child, Command, Spawner, Stdio, TreeKind};
use outpost_sandbox::{
    HostResources, HostSupport, PrepareError, Sandbox, SandboxError, SandboxRequest, Unenforceable,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    About, ActivityTracker, Delivery, Limits, Process, Reservation, Session, SessionId, Start,
    StartError, Terminal, actor::Actor, clock, closed_processes::ClosedProcesses,
    freed_bytes::FreedBytes, stdin::Stdin,
};

/// Processes and sessions of one server. Clones share one engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    limits: Limits,
    spawner: Spawner,
    /// `None` if sandboxing is unavailable.
    sandbox: Option<Sandbox>,
    sessions: Mutex<HashMap<SessionId, Session>>,
    /// Sessions that belong to one connection each and end with it.
    private_sessions: Mutex<HashMap<SessionId, Session>>,
    /// All processes whose tree may be alive, even if their session is gone.
    alive: Mutex<HashMap<usize, Process>>,
    /// One permit for each process that may run concurrently.
    process_permits: Arc<Semaphore>,
    closed: Mutex<ClosedProcesses<(Session, Process)>>,
    /// Wakes [`expire_closed`]: a process was added to `closed`.
    closed_added: Notify,
    freed: Arc<FreedBytes>,
    /// Counts processes that are starting, running or still readable, and
    /// connections.
    activity: ActivityTracker,
    /// All tasks of the engine.
    tasks: TaskTracker,
    /// Cancelled at shutdown, for tasks that only wait for a timer.
    ending: CancellationToken,
}

impl Engine {
    /// Creates an engine without sessions. Must be called inside a runtime.
    #[must_use]
    pub fn new(spawner: Spawner, limits: Limits) -> Self {
        Self::with_sandbox(spawner, None, limits)
    }

    /// Creates an engine that can sandbox processes. Without a sandbox, starts with a
    /// policy fail.
    #[must_use]
    pub fn with_sandbox(spawner: Spawner, sandbox: Option<Sandbox>, limits: Limits) -> Self {
        let closed = ClosedProcesses::new(
            limits.closed_retention,
            limits.closed_processes,
            limits.closed_bytes,
        );
        let engine = Engine {
            shared: Arc::new(Shared {
                process_permits: Arc::new(Semaphore::new(
                    limits.max_processes.min(Semaphore::MAX_PERMITS),
                )),
                limits,
                spawner,
                sandbox,
                sessions: Mutex::default(),
                private_sessions: Mutex::default(),
                alive: Mutex::default(),
                closed: Mutex::new(closed),
                closed_added: Notify::new(),
                freed: Arc::default(),
                activity: ActivityTracker::new(),
                tasks: TaskTracker::new(),
                ending: CancellationToken::new(),
            }),
        };
        engine.shared.tasks.spawn(expire_closed(engine.clone()));
        engine
    }

    /// The kind of process trees.
    #[must_use]
    pub fn tree_kind(&self) -> TreeKind {
        self.shared.spawner.tree_kind()
    }

    /// Returns what this host's sandbox can enforce. Probes the host until a probe has succeeded.
    ///
    /// # Errors
    /// If processes can't be confined, with the remedy.
    pub async fn sandbox_support(&self) -> Result<HostSupport, Unenforceable> {
        match &self.shared.sandbox {
            Some(sandbox) => sandbox.support().await,
            None => Err(Unenforceable::NoHelper),
        }
    }

    fn sandbox(&self) -> Result<&Sandbox, SandboxError> {
        let sandbox = self.shared.sandbox.as_ref();
        sandbox.ok_or_else(|| PrepareError::from(Unenforceable::NoHelper).into())
    }

    /// Waits until enough memory was freed since the last call that trimming the heap is
    /// worthwhile. Supports one waiter.
    pub async fn wait_for_freed_memory(&self) {
        self.shared
            .freed
            .wait_for(self.shared.limits.trim_after_bytes)
            .await;
    }

    /// Counts active users. A process is active from its start until it is forgotten.
    #[must_use]
    pub fn activity(&self) -> &ActivityTracker {
        &self.shared.activity
    }

    /// Starts a process in its reserved slot.
    pub async fn start(
        &self,
        session: &Session,
        reservation: Reservation,
        start: Start,
    ) -> Result<Process, StartError> {
        let (child, permit) = match self.spawn_within_limits(&reservation, &start).await {
            Ok(spawned) => spawned,
            Err(error) => return Err(reservation.fail(error)),
        };
        let about = Arc::clone(&reservation.about);
        let process = self.register(session, about, &start, child, permit);
        if let Err(error) = reservation.fill(&process) {
            process.abandon();
            process.end(Some(Duration::ZERO));
            return Err(error);
        }
        Ok(process)
    }

    /// Spawns the child, with retries, if the limit on processes allows it.
    async fn spawn_within_limits(
        &self,
        reservation: &Reservation,
        start: &Start,
    ) -> Result<((Child, Option<HostResources>), OwnedSemaphorePermit), StartError> {
        reservation.check()?;
        let permits = Arc::clone(&self.shared.process_permits);
        let permit = permits
            .try_acquire_owned()
            .map_err(|_| StartError::TooMany)?;
        let mut attempts = StartRetries::within(self.shared.limits.sandbox_start_timeout);
        loop {
            let spawned = self.spawn(reservation, start).await;
            if !attempts.again(&spawned) {
                return Ok((spawned?, permit));
            }
        }
    }

    /// Makes one attempt to spawn the child.
    async fn spawn(
        &self,
        reservation: &Reservation,
        start: &Start,
    ) -> Result<(Child, Option<HostResources>), StartError> {
        let spawner = &self.shared.spawner;
        let Some(policy) = start.sandbox.clone() else {
            return Ok((spawner.spawn(command_of(start)).await?, None));
        };
        let tmpdir = start.env.iter().rev().find(|(name, _)| name == "TMPDIR");
        let tmpdir = tmpdir.map(|(_, value)| value.clone());
        let request = SandboxRequest { policy, tmpdir };
        let limit = self.shared.limits.sandbox_start_timeout;
        let sandbox = self.sandbox()?;
        // Preparation may take long and there is nothing to undo yet, so a cancelled start doesn't
        // wait for it.
        let prepared = tokio::select! {
            prepared = sandbox.prepare_process(request, command_of(start), limit) => prepared?,
            error = reservation.cancelled() => return Err(error),
        };
        reservation.check()?;
        let (child, resources) = prepared.start(spawner, limit).await?;
        Ok((child, Some(resources)))
    }

    /// Creates the journal and the actor of a child.
    fn register(
        &self,
        session: &Session,
        about: Arc<About>,
        start: &Start,
        (child, resources): (Child, Option<HostResources>),
        permit: OwnedSemaphorePermit,
    ) -> Process {
        let limits = &self.shared.limits;
        let journal = Journal::new(outpost_journal::Limits {
            retain_bytes: start
                .retain_bytes
                .map_or(limits.retain_bytes, |own| own.min(limits.retain_bytes)),
            retain_chunks: limits.retain_chunks,
            window_bytes: limits.window_bytes,
        });
        let stdin = Stdin::new(child.stdin, limits.stdin_bytes, limits.write_ids);
        let process = Process::new(
            about,
            child.control,
            journal,
            stdin,
            Arc::clone(&self.shared.freed),
        );
        // Retain from the first byte: output could otherwise be evicted before the owner
        // attaches.
        process.wait_for_owner();
        let actor = Actor {
            process: process.clone(),
            outputs: child.outputs,
            ended: Vec::new(),
            exit: child.exit,
            timeout_at: start
                .timeout
                .map(|timeout| clock::after(clock::now(), timeout)),
            drain: start.drain,
            resources,
            leftovers: None,
            late_output_timeout: limits.late_output_timeout,
            read_bytes: limits.read_bytes,
        };
        let engine = self.clone();
        let session = session.clone();
        let closed = process.clone();
        self.alive().insert(process.key(), process.clone());
        self.shared.tasks.spawn(async move {
            // Leftover processes of a sandbox keep the permit and the process id. Each
            // holds resources here without another limit, and a client that wants the
            // permit back must be able to terminate them.
            if let Some(leftovers) = actor.run().await {
                leftovers.wait().await;
            }
            engine.remove_unless_leftovers(&closed);
            // Wait for acknowledgements, and for the connection of a private session, so
            // that their retained output counts against the limit on processes. Other
            // connections hold their own handle until everything was sent.
            if session.is_private() || session.delivery() == Delivery::Acked {
                closed.delivered().await;
            }
            drop(permit);
            if session.is_private() {
                // The owner has received everything and frees the id itself.
                engine.remove_without_leftovers();
            } else {
                engine.retain_closed(session, closed);
            }
        });
        process
    }

    /// Terminates all processes and waits until they are gone, at most `within`. Returns
    /// whether all are gone.
    pub async fn shutdown(&self, within: Duration) -> bool {
        self.shared.ending.cancel();
        let sessions: Vec<_> = self.sessions().values().cloned().collect();
        for session in sessions {
            self.begin_end(&session);
        }
        let private: Vec<_> = self.private_sessions().values().cloned().collect();
        for session in private {
            self.end_private_session(&session);
        }
        self.shared.tasks.close();
        tokio::time::timeout(within, self.shared.tasks.wait())
            .await
            .is_ok()
    }

    /// Kills all processes, for an immediate exit.
    pub fn kill_all(&self) {
        for process in self.alive().values() {
            process.kill_tree();
        }
    }

    /// Forgets a process if its tree is gone.
    fn remove_unless_leftovers(&self, process: &Process) {
        if !process.has_leftovers() {
            self.alive().remove(&process.key());
        }
    }

    /// Forgets all closed processes whose leftover processes are gone. Their exit causes
    /// no event.
    fn remove_without_leftovers(&self) {
        self.alive()
            .retain(|_, process| !process.is_done() || process.has_leftovers());
    }

    fn alive(&self) -> MutexGuard<'_, HashMap<usize, Process>> {
        self.shared.alive.lock()
    }

    fn private_sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.shared.private_sessions.lock()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.shared.sessions.lock()
    }
}

fn command_of(start: &Start) -> Command {
    Command {
        argv: start.argv.iter().map(Into::into).collect(),
        arg0: start.arg0.as_ref().map(Into::into),
        cwd: start.cwd.clone(),
        env: start.env.clone(),
        stdio: match start.terminal {
            Terminal::Pipes { stdin } => Stdio::Pipes { stdin },
            Terminal::Pty(size) => Stdio::Pty { size },
        },
        wrapper: None,
    }
}
