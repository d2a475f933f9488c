//! The handle on a session.

use std::{
    fmt,
    sync::Arc,
    time::{Instant, SystemTime},
};

use outpost_types::{Delivery, NetworkAnswer, NetworkDecision, NetworkTarget, Seq};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, oneshot},
    task::AbortHandle,
};
use tokio_util::task::TaskTracker;

use super::{Epoch, Ttl, lease::Lease, slots::ProcessSlots};
use crate::{
    ActivityTracker, EventListener, Peer, PeerPermit, Process, ReadError,
    kept_output::OutputShare,
    shell_snapshot::{SnapshotCache, SnapshotEntry, SnapshotKey},
};

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

    /// The proxy of a process has made a decision. Does not block, and drops the decision if there is no
    /// space for it.
    fn network_decided(&self, _process: &str, _decision: &NetworkDecision) {}

    /// Asks the client about a target that no rule of a process's proxy allows. The receiver fails if the
    /// connection ends before the answer. Returns none if the client can't be asked.
    fn decide_network(
        &self,
        _process: &str,
        _target: NetworkTarget,
    ) -> Option<oneshot::Receiver<NetworkAnswer>> {
        None
    }
}

/// Options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The client that opens it.
    pub peer: Peer,
    /// The name of its principal, for people.
    pub principal: Option<String>,
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

/// The state of a session, shared by its handles.
pub(super) struct Shared {
    id: SessionId,
    created_at: SystemTime,
    peer: Peer,
    principal: Option<String>,
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

/// The part of a session that changes, behind one lock.
pub(super) struct State {
    pub(super) lease: Lease,
    label: Option<String>,
    pub(super) delivery: Delivery,
    pub(super) slots: ProcessSlots,
    /// Forgotten processes with leftover processes, and shells whose state is captured.
    pub(super) leftovers: Vec<Process>,
    pub(super) snapshots: SnapshotCache,
    /// Whether a process was ever forgotten.
    pub(super) has_forgotten: bool,
    /// The attached connection.
    pub(super) link: Option<Arc<dyn Link>>,
    /// The task that ends the session when it expires.
    pub(super) timer: Option<AbortHandle>,
    /// The permit of the session, until the session ends.
    pub(super) permit: Option<PeerPermit>,
}

impl Session {
    /// Creates a session, attached to the connection that opened it. Without a link it is private to
    /// that connection.
    pub(crate) fn new(
        options: SessionOptions,
        link: Option<Arc<dyn Link>>,
        permit: Option<PeerPermit>,
        activity: ActivityTracker,
        tasks: TaskTracker,
    ) -> (Session, Epoch) {
        let lease = Lease::new(options.ttl);
        let epoch = lease.epoch();
        let session = Session {
            shared: Arc::new(Shared {
                id: SessionId::random(),
                created_at: SystemTime::now(),
                peer: options.peer,
                principal: options.principal,
                private: link.is_none(),
                state: Mutex::new(State {
                    lease,
                    label: options.label,
                    delivery: options.delivery,
                    slots: ProcessSlots::default(),
                    leftovers: Vec::new(),
                    snapshots: SnapshotCache::default(),
                    has_forgotten: false,
                    link,
                    timer: None,
                    permit,
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

    /// The client that opened it.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.shared.peer
    }

    /// The name of the principal of the client that opened it.
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.shared.principal.as_deref()
    }

    /// A key that is unique among all sessions.
    pub(crate) fn key(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
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

    /// Returns the processes of the session.
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
        listener: &Arc<dyn EventListener>,
        start: impl FnOnce(Seq),
    ) {
        let state = self.state();
        if !state.lease.is_attached(epoch) {
            return;
        }
        process.attach(cursor, listener, start);
        // Not under the lock: the listener may call the session.
        drop(state);
        listener.events_available();
    }

    /// Advances the cursor of a process after its events were sent to a connection. Ignored if
    /// the connection was replaced.
    pub fn advance(&self, epoch: Epoch, process: &Process, cursor: Seq) {
        let state = self.state();
        if state.lease.is_attached(epoch) {
            process.advance(cursor);
        }
    }

    /// The attached connection.
    pub(crate) fn link(&self) -> Option<Arc<dyn Link>> {
        self.state().link.clone()
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

    /// Makes a process without a slot end with the session. Returns false if the session has ended.
    pub(crate) fn keep_leftover(&self, process: &Process) -> bool {
        let mut state = self.state();
        let has_ended = state.lease.has_ended();
        if !has_ended {
            state.leftovers.push(process.clone());
        }
        !has_ended
    }

    /// Returns the entry of a shell snapshot, see [`SnapshotCache::entry`].
    pub(crate) fn snapshot_entry(
        &self,
        key: SnapshotKey,
        share: OutputShare,
        max: usize,
    ) -> Option<Arc<SnapshotEntry>> {
        let mut state = self.state();
        let has_ended = state.lease.has_ended();
        (!has_ended).then(|| state.snapshots.entry(key, share, max))?
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
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
