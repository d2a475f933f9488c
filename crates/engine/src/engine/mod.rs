//! The engine: everything that runs here.

mod attempts;
mod clerks;
mod confining;
mod sessions;
mod shelving;

use attempts::Attempts;
pub use clerks::{Departure, Purpose};
pub use sessions::Resume;
use shelving::keep_the_shelf;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outpost_journal::Journal;
use outpost_process::{Child, Command, Spawner, Stdio, TreeKind};
use outpost_sandbox::{Hold, Means, Sandbox, Unenforceable};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    About, Attendance, Delivery, Limits, Process, Reservation, Session, SessionId, Start,
    StartError, Terminal, actor::Actor, clock, ebb::Ebb, shelf::Shelf, stdin::Stdin,
};

/// Processes and sessions of one server; clones name the same engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    limits: Limits,
    spawner: Spawner,
    /// None where nothing can be confined.
    sandbox: Option<Sandbox>,
    sessions: Mutex<HashMap<SessionId, Session>>,
    /// Sessions that belong to one connection each, which ends them.
    private_sessions: Mutex<HashMap<SessionId, Session>>,
    /// Every process that may have something running, whether or not its
    /// session is still known.
    alive: Mutex<HashMap<usize, Process>>,
    /// A place for each process that may run at once.
    places: Arc<Semaphore>,
    /// A turn for each that may be prepared for its sandbox at once.
    preparing: Arc<Semaphore>,
    shelf: Mutex<Shelf<(Session, Process)>>,
    /// Wakes the janitor: something was put on the shelf.
    shelved: Notify,
    ebb: Arc<Ebb>,
    /// Every process that is starting, running or still readable, and whoever
    /// else says so.
    attendance: Attendance,
    /// Every task of the engine.
    tasks: TaskTracker,
    /// Cancelled when the engine ends, for tasks that only wait for time.
    ending: CancellationToken,
}

impl Engine {
    /// An engine with no sessions. Must be called inside a runtime.
    #[must_use]
    pub fn new(spawner: Spawner, limits: Limits) -> Self {
        Self::with_sandbox(spawner, None, limits)
    }

    /// The same with something to confine processes with; without, those that
    /// are to be confined don't start.
    #[must_use]
    pub fn with_sandbox(spawner: Spawner, sandbox: Option<Sandbox>, limits: Limits) -> Self {
        let shelf = Shelf::new(
            limits.closed_retention,
            limits.closed_processes,
            limits.closed_bytes,
        );
        let engine = Engine {
            shared: Arc::new(Shared {
                places: Arc::new(Semaphore::new(
                    limits.max_processes.min(Semaphore::MAX_PERMITS),
                )),
                preparing: Arc::new(Semaphore::new(confining::TURNS)),
                limits,
                spawner,
                sandbox,
                sessions: Mutex::default(),
                private_sessions: Mutex::default(),
                alive: Mutex::default(),
                shelf: Mutex::new(shelf),
                shelved: Notify::new(),
                ebb: Arc::default(),
                attendance: Attendance::new(),
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

    /// By what means processes are confined here, if they can be. The first time,
    /// and as long as they can't, it is found out by trying.
    ///
    /// # Errors
    /// When they can't, with what to do about it.
    pub async fn confining_means(&self) -> Result<Means, Unenforceable> {
        confining::means(self.shared.sandbox.as_ref()).await
    }

    /// Waits until processes that are gone have freed so much since the last
    /// time that it is worth giving back to the system. For one task at a time.
    pub async fn ebbed(&self) {
        self.shared.ebb.reaches(self.shared.limits.ebb_bytes).await;
    }

    /// Who is there: a process is, from its start until it is forgotten.
    #[must_use]
    pub fn attendance(&self) -> &Attendance {
        &self.shared.attendance
    }

    /// Starts a process in the slot that was reserved for it.
    pub async fn start(
        &self,
        session: &Session,
        reservation: Reservation,
        start: Start,
    ) -> Result<Process, StartError> {
        let (child, place) = match self.bear(&reservation, &start).await {
            Ok(born) => born,
            Err(error) => return Err(reservation.fail(error)),
        };
        let about = Arc::clone(&reservation.about);
        let process = self.adopt(session, about, &start, child, place);
        if let Err(error) = reservation.fill(&process) {
            process.abandon();
            process.end(Some(Duration::ZERO));
            return Err(error);
        }
        Ok(process)
    }

    /// A child whose program runs, and its place among all that run.
    async fn bear(
        &self,
        reservation: &Reservation,
        start: &Start,
    ) -> Result<((Child, Option<Hold>), OwnedSemaphorePermit), StartError> {
        reservation.check()?;
        let places = Arc::clone(&self.shared.places);
        let place = places
            .try_acquire_owned()
            .map_err(|_| StartError::TooMany)?;
        let mut attempts = Attempts::within(self.shared.limits.confine_within);
        loop {
            let spawned = self.spawn(reservation, start).await;
            if !attempts.again(&spawned) {
                return Ok((spawned?, place));
            }
        }
    }

    /// A child whose program runs, as things are now.
    async fn spawn(
        &self,
        reservation: &Reservation,
        start: &Start,
    ) -> Result<(Child, Option<Hold>), StartError> {
        let (sandbox, turns) = (self.shared.sandbox.as_ref(), &self.shared.preparing);
        let within = self.shared.limits.confine_within;
        // Looking at the host's files may take long, and goes on by itself. There
        // is nothing to undo yet, so who cancels needn't wait for it.
        let (command, confinement) = tokio::select! {
            prepared = confining::prepare(sandbox, turns, start, command_of(start), within) => {
                prepared?
            }
            unwanted = reservation.unwanted() => return Err(unwanted),
        };
        reservation.check()?;
        let spawned = self.shared.spawner.spawn(command).await;
        let Some(confinement) = confinement else {
            return Ok((spawned?, None));
        };
        let child = spawned.map_err(confining::not_carried)?;
        let (child, hold) = confinement.see_through(child, start, within).await?;
        Ok((child, Some(hold)))
    }

    /// Gives a child its journal and its actor.
    fn adopt(
        &self,
        session: &Session,
        about: Arc<About>,
        start: &Start,
        (child, hold): (Child, Option<Hold>),
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
        let process = Process::new(
            about,
            child.control,
            journal,
            stdin,
            Arc::clone(&self.shared.ebb),
        );
        // Waited for from its first byte, or what it writes before its owner
        // has heard of it might be gone by then.
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
            hold,
            vigil: None,
            late_within: limits.late_within,
            read_bytes: limits.read_bytes,
        };
        let engine = self.clone();
        let session = session.clone();
        let closed = process.clone();
        self.alive().insert(process.key(), process.clone());
        self.shared.tasks.spawn(async move {
            // What a confined process has left keeps its place, and its name: something
            // is held here for each of them, there is no other bound for that, and who
            // wants the place back has to be able to end it.
            if let Some(vigil) = actor.run().await {
                vigil.keep().await;
            }
            engine.check_out(&closed);
            // Who acknowledges is waited for, and so is the one connection that a
            // private session has: what is kept for it is kept by a process that
            // counts. Who is pushed to otherwise has its own copy of the handle
            // until it has been sent everything.
            if session.is_private() || session.delivery() == Delivery::Acked {
                closed.delivered().await;
            }
            drop(place);
            if session.is_private() {
                // Its owner has been told everything, and says itself when the
                // name is free.
                engine.check_out_leftovers();
            } else {
                engine.shelve(session, closed);
            }
        });
        process
    }

    /// Ends everything and waits until it is gone, but no longer than `within`;
    /// says whether all of it went.
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

    /// Kills everything at once, for an end that can't wait.
    pub fn kill_all(&self) {
        for process in self.alive().values() {
            process.kill_tree();
        }
    }

    /// Forgets a process that has nothing running any more.
    fn check_out(&self, process: &Process) {
        if !process.has_leftovers() {
            self.alive().remove(&process.key());
        }
    }

    /// Forgets every process that had left something running when it was done
    /// and has nothing running any more: nobody tells when the last of it goes.
    fn check_out_leftovers(&self) {
        self.alive()
            .retain(|_, process| !process.is_done() || process.has_leftovers());
    }

    fn alive(&self) -> MutexGuard<'_, HashMap<usize, Process>> {
        self.shared
            .alive
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn private_sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.shared
            .private_sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.shared
            .sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
        carrier: None,
    }
}
