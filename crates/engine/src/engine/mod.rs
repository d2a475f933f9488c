//! The engine: everything that runs here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outpost_journal::Journal;
use outpost_process::{Child, Command, Spawner, Stdio, TreeKind};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::sleep_until,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    About, Delivery, Epoch, Limits, Link, Process, Reservation, ResumeRefusal, Session, SessionId,
    SessionOptions, Start, StartError, Terminal, Ttl,
    actor::Actor,
    clock,
    session::{Detached, Ended},
    shelf::Shelf,
    stdin::Stdin,
};

/// How a session is resumed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resume {
    /// Although another connection has it.
    pub takeover: bool,
    /// With another delivery than before.
    pub delivery: Option<Delivery>,
    /// With another lease than before.
    pub ttl: Option<Ttl>,
}

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

    /// A new session, attached to the caller; none if there are too many.
    #[must_use]
    pub fn open_session(
        &self,
        options: SessionOptions,
        link: Arc<dyn Link>,
    ) -> Option<(Session, Epoch)> {
        let mut sessions = self.sessions();
        if sessions.len() >= self.shared.limits.max_sessions || self.shared.ending.is_cancelled() {
            return None;
        }
        let (session, epoch) = Session::new(options, link);
        sessions.insert(session.id().clone(), session.clone());
        Some((session, epoch))
    }

    /// Lets the caller into a session that it knows the name of.
    pub fn resume_session(
        &self,
        id: &str,
        resume: Resume,
        link: Arc<dyn Link>,
    ) -> Result<(Session, Epoch), ResumeRefusal> {
        let known = self.sessions().get(&SessionId::claimed(id)).cloned();
        let session = known.ok_or(ResumeRefusal::Gone)?;
        let epoch = session.resume(
            clock::now(),
            resume.takeover,
            resume.delivery,
            resume.ttl,
            link,
        )?;
        self.let_catch_up(&session, epoch);
        Ok((session, epoch))
    }

    /// What was retained when a client came back stays for a while, so that it
    /// can read what it missed.
    fn let_catch_up(&self, session: &Session, epoch: Epoch) {
        let processes = session.processes();
        let grace = self.shared.limits.catch_up;
        let engine = self.clone();
        let session = session.clone();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(grace) => {}
                () = engine.shared.ending.cancelled() => {}
            }
            if session.is_current(epoch) {
                for process in processes {
                    process.release();
                }
            }
        });
    }

    /// Every session, oldest first.
    #[must_use]
    pub fn list_sessions(&self) -> Vec<Session> {
        let mut sessions: Vec<_> = self.sessions().values().cloned().collect();
        sessions.sort_by_key(Session::created_at);
        sessions
    }

    /// The caller's connection is gone: the session stays for a while.
    pub fn detach(&self, session: &Session, epoch: Epoch) {
        let Some(detached) = session.detach(epoch, clock::now()) else {
            return;
        };
        tracing::debug!(session = %session.id(), "session detached");
        let Detached::Until(expires) = detached else {
            return;
        };
        let engine = self.clone();
        let waiting = session.clone();
        let timer = self.shared.tasks.spawn(async move {
            tokio::select! {
                () = sleep_until(expires.into()) => {}
                () = engine.shared.ending.cancelled() => return,
            }
            if let Some(ended) = waiting.expire(clock::now()) {
                tracing::info!(session = %waiting.id(), "session expired");
                engine.sessions().remove(waiting.id());
                engine.end_all_of(ended);
            }
        });
        session.set_timer(timer.abort_handle());
    }

    /// Ends a session and everything in it, and waits until that is gone.
    pub async fn end_session(&self, session: &Session) {
        let processes = self.begin_end(session);
        let all_closed = async {
            for process in &processes {
                process.gone().await;
            }
        };
        // The ladder ends in a kill, so this is never waited for in full.
        let _ = tokio::time::timeout(self.shared.limits.end_grace * 2, all_closed).await;
    }

    fn begin_end(&self, session: &Session) -> Vec<Process> {
        self.sessions().remove(session.id());
        match session.end() {
            Some(ended) => self.end_all_of(ended),
            None => Vec::new(),
        }
    }

    fn end_all_of(&self, ended: Ended) -> Vec<Process> {
        for process in &ended.processes {
            process.abandon();
            process.end(Some(self.shared.limits.end_grace));
        }
        for control in ended.leftovers {
            if let Err(error) = control.kill_tree() {
                tracing::warn!(pid = control.pid(), %error, "failed to end what a process left");
            }
        }
        ended.processes
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
        let about = Arc::clone(&reservation.about);
        let process = self.adopt(session, about, &start, child, place);
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
        about: Arc<About>,
        start: &Start,
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
        let delivery = session.delivery();
        let stdin = Stdin::new(child.stdin, limits.stdin_bytes, limits.write_ids);
        let process = Process::new(about, child.control, journal, stdin);
        if delivery == Delivery::Acked {
            // Waited for from its first byte, whether or not its connection
            // is still there.
            process.wait_for_owner();
        }
        let actor = Actor {
            process: process.clone(),
            outputs: child.outputs,
            exit: child.exit,
            timeout_at: start.timeout.map(|timeout| clock::now() + timeout),
            read_bytes: limits.read_bytes,
        };
        let engine = self.clone();
        let session = session.clone();
        let closed = process.clone();
        self.shared.tasks.spawn(async move {
            actor.run().await;
            closed.delivered().await;
            drop(place);
            engine.shelve(session, closed);
        });
        process
    }

    /// A closed process stays readable for a while.
    fn shelve(&self, session: Session, process: Process) {
        let bytes = process.retained_bytes();
        self.shelf().put(clock::now(), (session, process), bytes);
        self.shared.shelved.notify_one();
    }

    /// Ends everything and waits until it is gone, but no longer than `within`;
    /// says whether all of it went.
    pub async fn shutdown(&self, within: Duration) -> bool {
        self.shared.ending.cancel();
        let sessions: Vec<_> = self.sessions().values().cloned().collect();
        for session in sessions {
            self.begin_end(&session);
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
        let gone = engine.shelf().clear(clock::now());
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
