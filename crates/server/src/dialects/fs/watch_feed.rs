//! The notifications of the watches of one connection.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use outpost_engine::PeerPermit;
use outpost_files::{Changes, WatchKey, WatchListener};
use outpost_protocol::{
    AppChanged, FS_CHANGED, FS_MISSING_CHANGED, FsChanged, FsMissingChanged, PathUri,
};
use outpost_rpc::{Feed, FrameBuffer, MemoryCharge, MemoryShare, More, Outbox};
use parking_lot::Mutex;

use crate::dialects::notifier::{Notifier, SharedNotificationOptions};

/// How paths are written to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathForm {
    /// As `file:` URIs.
    Uri,
    /// As the host writes them, for clients of the app-server.
    Native,
}

/// Sends the changes of watched files. While the client does not read, later changes are added to the
/// unsent ones.
pub(super) struct WatchFeed {
    this: Weak<WatchFeed>,
    outbox: Outbox,
    notifications: SharedNotificationOptions,
    memory: MemoryShare,
    state: Mutex<State>,
    /// Whether the feed is in the ready queue.
    queued: AtomicBool,
}

/// The watches of a connection and their unsent changes.
#[derive(Default)]
struct State {
    keys: HashMap<String, WatchKey>,
    watches: HashMap<WatchKey, OpenWatch>,
    unsent: BTreeMap<WatchKey, (Changes, MemoryCharge)>,
    /// The id of a watch of missing paths that has fired.
    fired: Option<u64>,
}

/// A watch with its id.
struct OpenWatch {
    id: String,
    form: PathForm,
    /// Counts the watch among those of its peer.
    _permit: PeerPermit,
}

impl WatchFeed {
    pub(super) fn new(
        this: &Weak<Self>,
        outbox: &Outbox,
        notifications: &SharedNotificationOptions,
        memory: &MemoryShare,
    ) -> Self {
        WatchFeed {
            this: this.clone(),
            outbox: outbox.clone(),
            notifications: Arc::clone(notifications),
            memory: memory.clone(),
            state: Mutex::default(),
            queued: AtomicBool::new(false),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state.lock().watches.is_empty()
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.state.lock().keys.contains_key(id)
    }

    /// Adds a watch whose id is free.
    pub(super) fn insert(&self, id: String, key: WatchKey, form: PathForm, permit: PeerPermit) {
        let mut state = self.state.lock();
        state.keys.insert(id.clone(), key);
        let watch = OpenWatch {
            id,
            form,
            _permit: permit,
        };
        state.watches.insert(key, watch);
    }

    /// Removes a watch. Its unsent changes are dropped.
    pub(super) fn remove(&self, id: &str) -> Option<WatchKey> {
        let mut state = self.state.lock();
        let key = state.keys.remove(id)?;
        state.watches.remove(&key);
        state.unsent.remove(&key);
        Some(key)
    }

    /// Removes a watch that could not be opened, unless it was removed meanwhile.
    pub(super) fn remove_failed(&self, key: WatchKey) {
        let mut state = self.state.lock();
        if let Some(watch) = state.watches.remove(&key) {
            state.keys.remove(&watch.id);
        }
    }

    /// Removes everything when the connection ends.
    pub(super) fn clear(&self) {
        let state = std::mem::take(&mut *self.state.lock());
        drop(state);
    }

    /// Puts the feed into the ready queue.
    fn enqueue(&self) {
        if !self.queued.swap(true, Ordering::AcqRel)
            && let Some(this) = self.this.upgrade()
        {
            self.outbox.ready(this);
        }
    }
}

impl WatchListener for WatchFeed {
    fn changed(&self, watch: WatchKey, mut changes: Changes) {
        {
            let mut state = self.state.lock();
            if !state.watches.contains_key(&watch) {
                return;
            }
            let earlier = state.unsent.remove(&watch);
            let (unsent, charge) = earlier.unzip();
            let mut charge = charge.unwrap_or_else(|| self.memory.empty_charge());
            if !charge.try_grow(changes.bytes()) {
                changes.lose();
            }
            if let Some(unsent) = unsent {
                changes.merge(unsent);
            }
            charge.shrink_to(changes.bytes());
            state.unsent.insert(watch, (changes, charge));
        }
        self.enqueue();
    }

    fn missing_changed(&self, id: u64) {
        self.state.lock().fired = Some(id);
        self.enqueue();
    }
}

impl Feed for WatchFeed {
    fn fill(&self, frames: &mut FrameBuffer, _budget: usize) -> More {
        // Reset before the state is read: later changes must queue the feed again.
        self.queued.store(false, Ordering::Release);
        let mut notifier = Notifier::new(frames, &self.notifications);
        let mut state = self.state.lock();
        if let Some(watch_id) = state.fired.take() {
            notifier.notify(FS_MISSING_CHANGED, &FsMissingChanged { watch_id });
        }
        if let Some((key, (changes, _charge))) = state.unsent.pop_first()
            && let Some(watch) = state.watches.get(&key)
        {
            encode(&mut notifier, watch, &changes);
        }
        // The caller queues the feed again for `More::Yes`.
        if !state.unsent.is_empty() && !self.queued.swap(true, Ordering::AcqRel) {
            More::Yes
        } else {
            More::No
        }
    }

    fn written(&self) {}
}

fn encode(notifier: &mut Notifier<'_>, watch: &OpenWatch, changes: &Changes) {
    let watch_id = watch.id.clone();
    match watch.form {
        PathForm::Uri => {
            let uri = |path: &PathBuf| PathUri::from_path(path);
            let changed = FsChanged {
                watch_id,
                changed_paths: changes.paths().map(uri).collect(),
                missed: changes.missed(),
                unreadable: changes.unreadable().map(uri).collect(),
            };
            notifier.notify(FS_CHANGED, &changed);
        }
        PathForm::Native => {
            let text = |path: &PathBuf| path.to_string_lossy().into_owned();
            let changed = AppChanged {
                watch_id,
                changed_paths: changes.paths().map(text).collect(),
            };
            notifier.notify(FS_CHANGED, &changed);
        }
    }
}
