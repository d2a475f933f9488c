//! A session: the processes of one client, attached to a connection or not.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use outpost_journal::Seq;
use outpost_process::{Control, Signal, Size};
use tokio::sync::Notify;

use crate::{Process, ReadError, ResizeError, StartError, Watcher, WriteStatus};

/// The unguessable name of a session. `Debug` and `Display` show its beginning
/// only, because who knows it whole may resume the session.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    pub(crate) fn random() -> Self {
        SessionId(uuid::Uuid::new_v4().to_string())
    }

    /// The whole id: for the client it belongs to, and nobody else.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", &self.0[..8])
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which of a session's attachments is meant: a connection that was replaced
/// must not detach its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(u64);

/// What a terminate found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminated {
    /// It was running, or about to, and is being ended.
    Running,
    /// There was nothing to end.
    NotRunning,
}

/// A handle on a session; clones name the same one.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    id: SessionId,
    state: Mutex<Inside>,
    /// Wakes those who wait for a start, whenever one succeeds or fails.
    settled: Notify,
}

struct Inside {
    slots: HashMap<String, Slot>,
    /// What processes left running that are no longer in a slot.
    leftovers: Vec<Control>,
    epoch: Epoch,
    lease: Lease,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lease {
    Attached,
    Detached { expires: Instant },
    Ended,
}

enum Slot {
    /// The child doesn't exist yet.
    Starting {
        cancelled: bool,
    },
    Live(Process),
}

/// A slot that is to be filled; dropping it frees the slot.
pub struct Reservation {
    session: Session,
    /// Empty once the slot is filled.
    id: String,
}

impl Session {
    /// A new session, attached to the connection that made it.
    pub(crate) fn new() -> (Session, Epoch) {
        let epoch = Epoch(1);
        let session = Session {
            shared: Arc::new(Shared {
                id: SessionId::random(),
                state: Mutex::new(Inside {
                    slots: HashMap::new(),
                    leftovers: Vec::new(),
                    epoch,
                    lease: Lease::Attached,
                }),
                settled: Notify::new(),
            }),
        };
        (session, epoch)
    }

    /// The session's name.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// The processes it has.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        let inside = self.inside();
        inside
            .slots
            .values()
            .filter_map(|slot| match slot {
                Slot::Live(process) => Some(process.clone()),
                Slot::Starting { .. } => None,
            })
            .collect()
    }

    /// The ids that are reserved by a start under way.
    #[must_use]
    pub fn starting(&self) -> Vec<String> {
        let inside = self.inside();
        inside
            .slots
            .iter()
            .filter(|(_, slot)| matches!(slot, Slot::Starting { .. }))
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Finds a process to read from.
    pub fn find(&self, id: &str) -> Result<Process, ReadError> {
        match self.inside().slots.get(id) {
            Some(Slot::Live(process)) => Ok(process.clone()),
            Some(Slot::Starting { .. }) => Err(ReadError::Starting(id.to_owned())),
            None => Err(ReadError::Unknown(id.to_owned())),
        }
    }

    /// Makes a connection the owner of a process, unless it has been replaced
    /// or lost meanwhile.
    pub fn attach(&self, epoch: Epoch, process: &Process, cursor: Seq, watcher: &Arc<dyn Watcher>) {
        let inside = self.inside();
        if inside.epoch == epoch && inside.lease == Lease::Attached {
            process.attach(cursor, watcher);
        }
    }

    /// The connection is gone; answers when the session ends unless another
    /// one comes, or nothing if that connection didn't matter any more.
    pub(crate) fn detach(&self, epoch: Epoch, now: Instant, ttl: Duration) -> Option<Instant> {
        let mut inside = self.inside();
        if inside.epoch != epoch || inside.lease != Lease::Attached {
            return None;
        }
        let expires = now + ttl;
        inside.lease = Lease::Detached { expires };
        for slot in inside.slots.values() {
            if let Slot::Live(process) = slot {
                process.detach();
            }
        }
        Some(expires)
    }

    /// Whether the session is detached and its time is over.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        matches!(self.inside().lease, Lease::Detached { expires } if expires <= now)
    }

    /// Ends the session; its processes are to be ended by the caller.
    pub(crate) fn end(&self) -> (Vec<Process>, Vec<Control>) {
        let mut inside = self.inside();
        inside.lease = Lease::Ended;
        let leftovers = std::mem::take(&mut inside.leftovers);
        let slots = std::mem::take(&mut inside.slots);
        let live = slots.into_values().filter_map(|slot| match slot {
            Slot::Live(process) => Some(process),
            Slot::Starting { .. } => None,
        });
        (live.collect(), leftovers)
    }

    /// Reserves an id for a process that is about to start.
    pub fn reserve(&self, id: &str) -> Result<Reservation, StartError> {
        let mut inside = self.inside();
        if inside.lease == Lease::Ended {
            return Err(StartError::SessionEnded);
        }
        if inside.slots.contains_key(id) {
            return Err(StartError::Exists(id.to_owned()));
        }
        let slot = Slot::Starting { cancelled: false };
        inside.slots.insert(id.to_owned(), slot);
        Ok(Reservation {
            session: self.clone(),
            id: id.to_owned(),
        })
    }

    /// Waits until no start of this id is under way.
    pub async fn settled(&self, id: &str) {
        loop {
            let settled = self.shared.settled.notified();
            if !matches!(self.inside().slots.get(id), Some(Slot::Starting { .. })) {
                return;
            }
            settled.await;
        }
    }

    /// Forgets a process that was closed long enough ago. What it left running
    /// stays with the session.
    pub(crate) fn forget(&self, process: &Process) {
        let mut inside = self.inside();
        let same = matches!(inside.slots.get(process.id()), Some(Slot::Live(live)) if Arc::ptr_eq(&live.shared, &process.shared));
        if same {
            inside.slots.remove(process.id());
            inside.leftovers.retain(Control::has_leftovers);
            if process.shared.control.has_leftovers() {
                inside.leftovers.push(process.shared.control.clone());
            }
        }
    }

    /// Writes to a process.
    pub async fn write(
        &self,
        id: &str,
        bytes: Bytes,
        write_id: Option<String>,
        end: bool,
    ) -> WriteStatus {
        match self.find(id) {
            Ok(process) => process.write(bytes, write_id, end).await,
            Err(ReadError::Starting(_)) => WriteStatus::Starting,
            Err(ReadError::Unknown(_)) => WriteStatus::UnknownProcess,
        }
    }

    /// Signals a process; nobody there is nobody signalled.
    pub fn signal(&self, id: &str, signal: Signal) {
        if let Ok(process) = self.find(id) {
            process.signal(signal);
        }
    }

    /// Ends a process, or the start of one; `tree` also kills what one that
    /// has exited left running.
    pub fn terminate(&self, id: &str, grace: Option<Duration>, tree: bool) -> Terminated {
        let process = {
            let mut inside = self.inside();
            match inside.slots.get_mut(id) {
                None => return Terminated::NotRunning,
                Some(Slot::Starting { cancelled }) => {
                    *cancelled = true;
                    return Terminated::Running;
                }
                Some(Slot::Live(process)) => process.clone(),
            }
        };
        if process.is_running() {
            process.end(grace);
            return Terminated::Running;
        }
        if tree {
            process.kill_tree();
        }
        Terminated::NotRunning
    }

    /// Gives a process's terminal another size.
    pub fn resize(&self, id: &str, size: Size) -> Result<(), ResizeError> {
        let process = self
            .find(id)
            .map_err(|_| ResizeError::Unknown(id.to_owned()))?;
        if !process.is_pty() {
            return Err(ResizeError::NotATerminal(id.to_owned()));
        }
        process.resize(size).map_err(|source| ResizeError::Os {
            id: id.to_owned(),
            source,
        })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Puts the process into its slot; fails if somebody didn't want it any
    /// more, and then the child must go.
    pub(crate) fn fill(mut self, process: &Process) -> Result<(), StartError> {
        let id = std::mem::take(&mut self.id);
        self.settle(&id, |slot| match slot {
            Some(Slot::Starting { cancelled: false }) => {
                (Some(Slot::Live(process.clone())), Ok(()))
            }
            Some(_) => (None, Err(StartError::Cancelled(id.clone()))),
            None => (None, Err(StartError::SessionEnded)),
        })
    }

    /// Whether a terminate came meanwhile; then there is no need to go on.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        match self.session.inside().slots.get(&self.id) {
            Some(Slot::Starting { cancelled: true }) => Err(StartError::Cancelled(self.id.clone())),
            Some(_) => Ok(()),
            None => Err(StartError::SessionEnded),
        }
    }

    fn settle<T>(&self, id: &str, change: impl FnOnce(Option<Slot>) -> (Option<Slot>, T)) -> T {
        let mut inside = self.session.inside();
        let (slot, result) = change(inside.slots.remove(id));
        if let Some(slot) = slot {
            inside.slots.insert(id.to_owned(), slot);
        }
        drop(inside);
        self.session.shared.settled.notify_waiters();
        result
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.id.is_empty() {
            let id = std::mem::take(&mut self.id);
            self.settle(&id, |_| (None, ()));
        }
    }
}
