//! The handle on a session.

use std::{
    fmt,
    sync::Arc,
    time::{Instant, SystemTime},
};

use outpost_types::{Delivery, Seq};
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, task::AbortHandle};
use tokio_util::task::TaskTracker;

use super::{Detached, Epoch, ResumeError, Ttl, lease::Lease, slots::ProcessSlots};
use crate::{ActivityTracker, Process, ReadError, Resume, Watcher};

/// An unguessable session id. `Debug` and `Display` show only its prefix, because the whole
/// id grants access to the session.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    pub(crate) fn random() -> Self {
        SessionId(uuid::Uuid::new_v4().to_string())
    }

    /// An unverified id from a client.
    pub(crate) fn claimed(text: &str) -> Self {
        SessionId(text.to_owned())
    }

    /// The whole id. Only for the client that owns the session.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.0.chars().take(8).collect();
        write!(f, "{shown}…")
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The connection that is attached to a session.
pub trait Link: Send + Sync {
    /// Another connection tried to resume the session. Checks whether the peer is alive, and
    /// drops the connection if not.
    fn probe(&self);

    /// Another connection has taken over the session.
    fn replaced(&self);

    /// A process has started in the session. Its events go to this connection.
    fn adopt(&self, session: &Session, epoch: Epoch, process: &Process);
}

/// Options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// How long it lives while detached.
    pub ttl: Ttl,
    /// A human-readable label.
    pub label: Option<String>,
    /// When output counts as delivered.
    pub delivery: Delivery,
}

/// A handle on a session. Clones refer to the same session.
#[derive(Clone)]
pub struct Session {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    id: SessionId,
    created_at: SystemTime,
    /// Whether it belongs to one connection and is invisible to others.
    private: bool,
    state: Mutex<State>,
    /// Counts its processes as active.
    pub(super) activity: ActivityTracker,
    /// The engine's tasks, which shutdown waits for.
    pub(super) tasks: TaskTracker,
    /// Notified when a start succeeds, fails or is cancelled.
    pub(super) start_finished: Notify,
}

pub(super) struct State {
    pub(super) lease: Lease,
    label: Option<String>,
    pub(super) delivery: Delivery,
    pub(super) slots: ProcessSlots,
    /// Forgotten processes with leftover processes.
    leftovers: Vec<Process>,
    /// Whether a process was ever forgotten.
    has_forgotten: bool,
    /// The attached connection.
    link: Option<Arc<dyn Link>>,
    /// The task that ends the session when it expires.
    timer: Option<AbortHandle>,
}

impl Session {
    /// Creates a session, attached to the connection that opened it. Without a link it is private to
    /// that connection.
    pub(crate) fn new(
        options: SessionOptions,
        link: Option<Arc<dyn Link>>,
        activity: ActivityTracker,
        tasks: TaskTracker,
    ) -> (Session, Epoch) {
        let lease = Lease::new(options.ttl);
        let epoch = lease.epoch();
        let session = Session {
            shared: Arc::new(Shared {
                id: SessionId::random(),
                created_at: SystemTime::now(),
                private: link.is_none(),
                state: Mutex::new(State {
                    lease,
                    label: options.label,
                    delivery: options.delivery,
                    slots: ProcessSlots::default(),
                    leftovers: Vec::new(),
                    has_forgotten: false,
                    link,
                    timer: None,
                }),
                activity,
                tasks,
                start_finished: Notify::new(),
            }),
        };
        (session, epoch)
    }

    /// The session id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// Whether it belongs to one connection and is invisible to others.
    pub(crate) fn is_private(&self) -> bool {
        self.shared.private
    }

    /// The human-readable label.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        self.state().label.clone()
    }

    /// When it was created.
    #[must_use]
    pub fn created_at(&self) -> SystemTime {
        self.shared.created_at
    }

    /// Whether a connection is attached.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.state().lease.has_owner()
    }

    /// Whether this attachment is still the current one.
    #[must_use]
    pub fn is_current(&self, epoch: Epoch) -> bool {
        self.state().lease.epoch() == epoch
    }

    /// When it expires, if it is detached.
    #[must_use]
    pub fn expires(&self) -> Option<Instant> {
        self.state().lease.expires()
    }

    /// When output counts as delivered.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        self.state().delivery
    }

    /// Its processes.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        self.state().slots.live().cloned().collect()
    }

    /// Finds a process.
    pub fn find(&self, id: &str) -> Result<Process, ReadError> {
        self.state().slots.find(id).cloned()
    }

    /// Makes a connection the owner of a process, from `cursor` or from the last owner's cursor,
    /// unless the connection was replaced or lost in the meantime. Passes the cursor to `start`.
    pub fn attach(
        &self,
        epoch: Epoch,
        process: &Process,
        cursor: Option<Seq>,
        watcher: &Arc<dyn Watcher>,
        start: impl FnOnce(Seq),
    ) {
        let state = self.state();
        if !state.lease.is_attached(epoch) {
            return;
        }
        process.attach(cursor, watcher, start);
        // Not under the lock: the watcher may call the session.
        drop(state);
        watcher.events_available();
    }

    /// Advances the cursor of a process after its events were sent to a connection. Ignored if
    /// the connection was replaced.
    pub fn advance(&self, epoch: Epoch, process: &Process, cursor: Seq) {
        let state = self.state();
        if state.lease.is_attached(epoch) {
            process.advance(cursor);
        }
    }

    /// Passes a started process to the attached connection. Without one, the next connection
    /// finds the process when it resumes.
    pub fn hand_over(&self, process: &Process) {
        let (epoch, link) = {
            let state = self.state();
            (state.lease.epoch(), state.link.clone())
        };
        if let Some(link) = link {
            link.adopt(self, epoch, process);
        }
    }

    /// Attaches another connection. Stops eviction; the caller resumes it after the new owner had
    /// time to read.
    pub(crate) fn resume(
        &self,
        now: Instant,
        options: Resume,
        link: Arc<dyn Link>,
    ) -> Result<Epoch, ResumeError> {
        let mut state = self.state();
        let resumed = state.lease.resume(now, options.takeover);
        let replaced = match resumed {
            Ok(_) => state.link.replace(link),
            Err(_) => state.link.clone(),
        };
        if resumed.is_ok() {
            if let Some(timer) = state.timer.take() {
                timer.abort();
            }
            if let Some(delivery) = options.delivery {
                state.delivery = delivery;
            }
            if let Some(ttl) = options.ttl {
                state.lease.set_ttl(ttl);
            }
            // Acked delivery needs no extra time: unacknowledged events are never evicted.
            if state.delivery == Delivery::Push {
                for process in state.slots.live() {
                    process.log().journal.hold();
                }
            }
        }
        drop(state);
        match (resumed, replaced) {
            (Ok(_), Some(old)) => old.replaced(),
            (Err(ResumeError::Attached), Some(current)) => current.probe(),
            _ => {}
        }
        resumed
    }

    /// Detaches the connection. Returns how long the session stays, or `None` if the connection
    /// was not the current one.
    pub(crate) fn detach(&self, epoch: Epoch, now: Instant) -> Option<Detached> {
        let mut state = self.state();
        let detached = state.lease.detach(epoch, now)?;
        state.link = None;
        for process in state.slots.live() {
            process.detach(state.delivery);
        }
        Some(detached)
    }

    /// Stores the task that ends the session when it expires.
    pub(crate) fn set_timer(&self, timer: AbortHandle) {
        let mut state = self.state();
        if state.lease.expires().is_some() {
            state.timer = Some(timer);
        } else {
            timer.abort();
        }
    }

    /// Ends the session if it has expired. The caller terminates the returned processes.
    pub(crate) fn expire(&self, now: Instant) -> Option<Vec<Process>> {
        self.end_if(|lease| lease.expire(now))
    }

    /// Ends the session, once. The caller terminates the returned processes.
    pub(crate) fn end(&self) -> Option<Vec<Process>> {
        self.end_if(Lease::end)
    }

    fn end_if(&self, ends: impl FnOnce(&mut Lease) -> bool) -> Option<Vec<Process>> {
        let mut state = self.state();
        let taken = ends(&mut state.lease).then(|| state.take_all());
        drop(state);
        // Cancel pending starts.
        self.shared.start_finished.notify_waiters();
        taken
    }

    /// Ends the session if it is detached and all its processes are forgotten and gone. Returns
    /// whether it did.
    pub(crate) fn end_if_forgotten(&self) -> bool {
        let mut state = self.state();
        state.leftovers.retain(Process::has_leftovers);
        let forgotten = state.has_forgotten
            && state.slots.is_empty()
            && state.leftovers.is_empty()
            && !state.lease.has_owner();
        forgotten && state.lease.end() && state.take_all().is_empty()
    }

    /// Forgets a process. Its leftover processes stay with the session.
    pub fn forget(&self, process: &Process) {
        let mut state = self.state();
        if state.slots.forget(process) {
            state.has_forgotten = true;
            if self.is_private() {
                // The owner has received everything and sends no further acknowledgement.
                process.detach(Delivery::Push);
            }
            state.leftovers.retain(Process::has_leftovers);
            if process.has_leftovers() {
                process.log().journal.forget_output();
                state.leftovers.push(process.clone());
            }
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }
}

impl State {
    /// Takes all processes of an ended session.
    fn take_all(&mut self) -> Vec<Process> {
        self.link = None;
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
        let slots = std::mem::take(&mut self.slots);
        let mut processes = std::mem::take(&mut self.leftovers);
        processes.extend(slots.live().cloned());
        processes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prefix_is_shown() {
        let id = SessionId::random();
        assert_eq!(id.reveal().len(), 36);
        assert_eq!(format!("{id} {id:?}").matches(&id.reveal()[..8]).count(), 2);
        assert!(!format!("{id}{id:?}").contains(&id.reveal()[..9]));
    }
}
