//! The engine: everything that runs here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use outpost_journal::Journal;
use outpost_process::{Child, Command, Spawner, Stdio, TreeKind};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::sleep_until,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Epoch, Limits, Process, Reservation, Session, SessionId, Start, StartError, Terminal,
    actor::Actor, process::About, shelf::Shelf, stdin::Stdin,
};

/// Processes and sessions of one server; clones name the same engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    limits: Limits,
    spawner: Spawner,
    sessions: Mutex<HashMap<SessionId, Session>>,
    /// A place for each process that may run at once.
    places: Arc<Semaphore>,
    shelf: Mutex<Shelf<(Session, Process)>>,
    /// Wakes the janitor: something was put on the shelf.
    shelved: Notify,
    /// Every task of the engine.
    tasks: TaskTracker,
    /// Cancelled when the engine ends, for tasks that only wait for time.
    ending: CancellationToken,
}

impl Engine {
    /// An engine with no sessions. Must be called inside a runtime.
    #[must_use]
    pub fn new(spawner: Spawner, limits: Limits) -> Self {
        let shelf = Shelf::new(
            limits.closed_retention,
            limits.closed_processes,
            limits.closed_bytes,
        );
        let engine = Engine {
            shared: Arc::new(Shared {
                places: Arc::new(Semaphore::new(limits.max_processes)),
                limits,
                spawner,
                sessions: Mutex::default(),
                shelf: Mutex::new(shelf),
                shelved: Notify::new(),
                tasks: TaskTracker::new(),
                ending: CancellationToken::new(),
            }),
        };
        engine.shared.tasks.spawn(keep_the_shelf(engine.clone()));
        engine
    }

    /// How whole trees are ended here.
    #[must_use]
    pub fn tree_kind(&self) -> TreeKind {
        self.shared.spawner.tree_kind()
    }

    /// A new session, attached to the caller.
    #[must_use]
    pub fn open_session(&self) -> (Session, Epoch) {
        let (session, epoch) = Session::new();
        self.sessions()
            .insert(session.id().clone(), session.clone());
        (session, epoch)
    }

    /// The caller's connection is gone: the session stays for a while.
    pub fn detach(&self, session: &Session, epoch: Epoch) {
        let ttl = self.shared.limits.session_ttl;
        let Some(expires) = session.detach(epoch, Instant::now(), ttl) else {
            return;
        };
        let engine = self.clone();
        let session = session.clone();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = sleep_until(expires.into()) => {}
                () = engine.shared.ending.cancelled() => return,
            }
            if session.is_expired(Instant::now()) {
                tracing::info!(session = %session.id(), "session expired");
                engine.end_session(&session);
            }
        });
    }

    /// Ends a session and everything in it.
    pub fn end_session(&self, session: &Session) {
        self.sessions().remove(session.id());
        let (processes, leftovers) = session.end();
        for process in processes {
            if process.is_running() {
                process.end(Some(self.shared.limits.end_grace));
            } else {
                process.kill_tree();
            }
        }
        for control in leftovers {
            if let Err(error) = control.kill_tree() {
                tracing::warn!(pid = control.pid(), %error, "failed to end what a process left");
            }
        }
    }

    /// Starts a process in the slot that was reserved for it.
    pub async fn start(
        &self,
        session: &Session,
        reservation: Reservation,
        start: Start,
    ) -> Result<Process, StartError> {
        reservation.check()?;
        let places = Arc::clone(&self.shared.places);
        let place = places
            .try_acquire_owned()
            .map_err(|_| StartError::TooMany)?;
        let child = self.shared.spawner.spawn(command_of(&start)).await?;
        let process = self.adopt(session, start, child, place);
        if let Err(error) = reservation.fill(&process) {
            process.end(Some(Duration::ZERO));
            return Err(error);
        }
        Ok(process)
    }

    /// Gives a child its journal and its actor.
    fn adopt(
        &self,
        session: &Session,
        start: Start,
        child: Child,
        place: OwnedSemaphorePermit,
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
        let about = About {
            id: start.id,
            argv: start.argv,
            cwd: start.cwd,
            metadata: start.metadata,
            started_at: SystemTime::now(),
            kill_grace: start.kill_grace,
        };
        let process = Process::new(about, child.control, journal, stdin);
        let actor = Actor {
            process: process.clone(),
            outputs: child.outputs,
            exit: child.exit,
            timeout_at: start.timeout.map(|timeout| Instant::now() + timeout),
            read_bytes: limits.read_bytes,
        };
        let engine = self.clone();
        let session = session.clone();
        let closed = process.clone();
        self.shared.tasks.spawn(async move {
            actor.run().await;
            drop(place);
            engine.shelve(session, closed);
        });
        process
    }

    /// A closed process stays readable for a while.
    fn shelve(&self, session: Session, process: Process) {
        let bytes = process.retained_bytes();
        self.shelf().put(Instant::now(), (session, process), bytes);
        self.shared.shelved.notify_one();
    }

    /// Ends everything and waits until it is gone, but no longer than `within`;
    /// says whether all of it went.
    pub async fn shutdown(&self, within: Duration) -> bool {
        self.shared.ending.cancel();
        let sessions: Vec<_> = self.sessions().values().cloned().collect();
        for session in sessions {
            self.end_session(&session);
        }
        self.shared.tasks.close();
        tokio::time::timeout(within, self.shared.tasks.wait())
            .await
            .is_ok()
    }

    /// Kills everything at once, for an end that can't wait.
    pub fn kill_all(&self) {
        let sessions: Vec<_> = self.sessions().values().cloned().collect();
        for session in sessions {
            for process in session.processes() {
                process.end(Some(Duration::ZERO));
            }
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.shared
            .sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<(Session, Process)>> {
        self.shared
            .shelf
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The janitor: takes closed processes off the shelf when their time is over.
async fn keep_the_shelf(engine: Engine) {
    loop {
        let gone = engine.shelf().clear(Instant::now());
        for (session, process) in gone {
            session.forget(&process);
        }
        let next = engine.shelf().next_expiry();
        tokio::select! {
            () = engine.shared.shelved.notified() => {}
            () = engine.shared.ending.cancelled() => return,
            () = async {
                match next {
                    Some(at) => sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            } => {}
        }
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
    }
}
