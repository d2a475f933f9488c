//! The engine: all sessions and processes of a server.

mod file_workers;
mod limit_check;
mod output_eviction;
mod running_time;
mod sessions;
mod shell_snapshots;
mod spawn;
mod start_retries;

pub use file_workers::{FileClient, WorkerExit};
pub use sessions::ResumeOptions;
use spawn::Spawned;

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use outpost_journal::{Journal, Seq};
use outpost_process::{Spawner, TreeKind};
use outpost_sandbox::{HostSupport, PrepareError, Sandbox, SandboxError, Unenforceable};
use outpost_types::EndedProcess;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    ActivityTracker, Delivery, Limits, Peer, PeerLimiter, PeerPermit, Process, ProcessInfo,
    Reservation, Session, SessionId, Start, StartError,
    actor::Actor,
    clock,
    closed_processes::{ClosedLimits, ClosedOwner, ClosedProcesses},
    freed_bytes::FreedBytes,
    kept_output::OutputBudget,
    network::ProxyLimits,
    stdin::Stdin,
    suspension_meter::SuspensionMeter,
};

/// Processes and sessions of one server. Clones share one engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

/// The state of an engine, shared by its clones and tasks.
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
    /// One permit per session, except private sessions.
    session_limiter: PeerLimiter,
    /// Held while a session of a peer with a limit on sessions gets its first process.
    first_starts: Mutex<()>,
    /// One permit per process that runs, or has leftover processes or unacknowledged output.
    process_limiter: PeerLimiter,
    closed: Mutex<ClosedProcesses<(Session, Process)>>,
    /// Wakes [`Engine::expire_closed`]: a process was added to `closed`.
    closed_added: Notify,
    freed: Arc<FreedBytes>,
    output_budget: Arc<OutputBudget>,
    network_proxies: ProxyLimits,
    /// Counts processes that are starting, running or still readable, and
    /// connections.
    activity: ActivityTracker,
    /// Leases and retention do not count the time that the server did not run.
    stops: Mutex<SuspensionMeter>,
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
        let closed = ClosedProcesses::new(ClosedLimits {
            retention: limits.closed_retention,
            max_items: limits.closed_processes,
            max_bytes: limits.closed_bytes,
        });
        let output_budget = Arc::new(OutputBudget::new(limits.kept_output_bytes));
        let engine = Engine {
            shared: Arc::new(Shared {
                session_limiter: PeerLimiter::new(limits.max_sessions, limits.owner_sessions),
                first_starts: Mutex::default(),
                process_limiter: PeerLimiter::new(
                    limits.max_processes,
                    limits.owner_processes.min(limits.max_processes / 8),
                ),
                limits,
                spawner,
                sandbox,
                sessions: Mutex::default(),
                private_sessions: Mutex::default(),
                alive: Mutex::default(),
                closed: Mutex::new(closed),
                closed_added: Notify::new(),
                freed: Arc::default(),
                output_budget,
                network_proxies: ProxyLimits::new(),
                activity: ActivityTracker::new(),
                stops: Mutex::default(),
                tasks: TaskTracker::new(),
                ending: CancellationToken::new(),
            }),
        };
        engine.shared.tasks.spawn(engine.clone().expire_closed());
        engine.shared.tasks.spawn(engine.clone().trim_history());
        engine
    }

    /// The kind of process trees.
    #[must_use]
    pub fn tree_kind(&self) -> TreeKind {
        self.shared.spawner.tree_kind()
    }

    /// Whether processes of this engine are, or were, in the cgroup with this id. Blocks on the cgroup file
    /// system.
    ///
    /// # Errors
    /// If the cgroups cannot be listed.
    pub fn owns_cgroup(&self, id: u64) -> io::Result<bool> {
        self.shared.spawner.owns_cgroup(id)
    }

    /// The processes that a killed server had left, and that were killed when this server started.
    #[must_use]
    pub fn ended_at_start(&self) -> &[EndedProcess] {
        self.shared.spawner.ended_at_start()
    }

    /// Returns what this host's sandbox can enforce. Probes the host until a probe has succeeded.
    ///
    /// # Errors
    /// If processes can't be sandboxed, with the remedy.
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
        let enough = self.shared.limits.trim_after_bytes;
        self.shared.freed.wait_for(enough).await;
    }

    /// Counts memory that was freed elsewhere, for [`Engine::wait_for_freed_memory`].
    pub fn memory_freed(&self, bytes: u64) {
        self.shared.freed.add(bytes);
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
        mut start: Start,
    ) -> Result<Process, StartError> {
        start.sandbox_network();
        let spawned = self.spawn_within_limits(session, &reservation, &start);
        let spawned = match spawned.await {
            Ok(spawned) => spawned,
            Err(error) => {
                let error = reservation.fail(error);
                if let Some(observer) = &start.observer {
                    observer.not_started(error.kind());
                }
                return Err(error);
            }
        };
        let info = Arc::clone(&reservation.info);
        let process = self.register(session, info, &start, spawned);
        if let Err(error) = reservation.fill(&process) {
            process.detach(Delivery::Push);
            process.terminate(Some(Duration::ZERO));
            return Err(error);
        }
        Ok(process)
    }

    fn process_permit(&self, peer: Peer, max: Option<usize>) -> Result<PeerPermit, StartError> {
        let limiter = &self.shared.process_limiter;
        limiter.acquire_within(peer, max).ok_or_else(|| {
            let own = max.filter(|max| limiter.held_by(peer) >= *max);
            own.map_or(StartError::TooMany, StartError::ProcessLimit)
        })
    }

    /// Creates the journal and the actor of a child.
    fn register(
        &self,
        session: &Session,
        info: Arc<ProcessInfo>,
        start: &Start,
        spawned: Spawned,
    ) -> Process {
        let Spawned {
            child,
            resources,
            network,
            permit,
        } = spawned;
        let limits = &self.shared.limits;
        let mut journal = Journal::new(outpost_journal::Limits {
            retain_bytes: limits
                .retain_bytes
                .min(start.retain_bytes.unwrap_or(usize::MAX)),
            retain_chunks: limits.retain_chunks,
            window_bytes: limits.window_bytes,
        });
        // Retain from the first byte: output could otherwise be evicted before the owner
        // attaches.
        journal.attach(Seq::START);
        let stdin = Stdin::new(child.stdin, limits.stdin_bytes, limits.write_ids);
        let freed = Arc::clone(&self.shared.freed);
        let output_share = self.shared.output_budget.share(session.peer());
        let handle = network.as_ref().map(|network| network.handle.clone());
        let control = child.control;
        let process = Process::new(info, control, journal, stdin, freed, output_share, handle);
        let network = network.map(|network| {
            self.report_decisions(session, &process, start.observer.clone(), network)
        });
        let timeout = start.timeout;
        let actor = Actor {
            process: process.clone(),
            outputs: child.outputs,
            ended: Vec::new(),
            exit: child.exit,
            timeout_at: timeout.map(|timeout| clock::after(clock::now(), timeout)),
            drain: start.drain,
            resources,
            network,
            leftovers: None,
            late_output_timeout: limits.late_output_timeout,
            cpu_seconds: start.limits.cpu_seconds,
            observer: start.observer.clone(),
        };
        let engine = self.clone();
        let session = session.clone();
        let closed = process.clone();
        let mut alive = self.shared.alive.lock();
        alive.insert(process.key(), process.clone());
        drop(alive);
        self.shared.tasks.spawn(async move {
            // Leftover processes of a sandbox keep the permit and the process id. Each
            // holds resources here without another limit, and a client that has to start
            // another process must be able to terminate them.
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
        for sessions in [&self.shared.sessions, &self.shared.private_sessions] {
            let sessions: Vec<_> = sessions.lock().values().cloned().collect();
            for session in sessions {
                self.begin_end(&session);
            }
        }
        self.shared.tasks.close();
        let all = tokio::time::timeout(within, self.shared.tasks.wait());
        all.await.is_ok()
    }

    /// Kills all processes, for an immediate exit.
    pub fn kill_all(&self) {
        for process in self.shared.alive.lock().values() {
            process.kill_tree();
        }
    }

    /// Forgets a process if its tree is gone.
    fn remove_unless_leftovers(&self, process: &Process) {
        if !process.has_leftovers() {
            self.shared.alive.lock().remove(&process.key());
        }
    }

    /// Forgets all closed processes whose leftover processes are gone. Their exit causes
    /// no event.
    fn remove_without_leftovers(&self) {
        let mut alive = self.shared.alive.lock();
        alive.retain(|_, process| !process.is_done() || process.has_leftovers());
    }

    /// Keeps a closed process readable until its retention is over.
    fn retain_closed(&self, session: Session, process: Process) {
        let bytes = process.log().journal.retained_bytes();
        let owner = ClosedOwner {
            peer: session.peer(),
            session: session.key(),
        };
        let mut closed = self.shared.closed.lock();
        closed.push(self.now(), owner, (session, process), bytes);
        drop(closed);
        self.shared.closed_added.notify_one();
    }

    /// Forgets closed processes when they expire, until the engine shuts down.
    async fn expire_closed(self) {
        loop {
            let limit_retention =
                |(_, process): &(Session, Process), keep| process.limit_retention(keep);
            let expired = {
                let mut closed = self.shared.closed.lock();
                closed.take_expired(self.now(), limit_retention)
            };
            if !expired.is_empty() {
                self.remove_without_leftovers();
                self.forget_closed(expired);
            }
            let next = self.shared.closed.lock().next_expiry();
            tokio::select! {
                () = self.shared.closed_added.notified() => {}
                () = self.shared.ending.cancelled() => return,
                () = self.sleep_until(next) => {}
            }
        }
    }
}
