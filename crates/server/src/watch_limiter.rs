//! Shares watches, and what they take from the kernel, among peers. The kernel limits inotify per user, so that one
//! client could otherwise take everything from the others.

use std::{fs, sync::Arc};

use outpost_engine::{Peer, PeerLimiter, PeerPermit};
use outpost_files::{WatchPermit, WatchPermits};

use crate::Settings;

/// The limits of the kernel, and their usual values.
const MAX_INSTANCES: (&str, usize) = ("/proc/sys/fs/inotify/max_user_instances", 128);
const MAX_WATCHED: (&str, usize) = ("/proc/sys/fs/inotify/max_user_watches", 8192);
/// The server uses this part of each, and leaves the rest to other programs of its user.
const USED: (usize, usize) = (7, 8);

/// The watches of all connections.
pub(crate) struct WatchLimiter {
    watches: PeerLimiter,
    instances: PeerLimiter,
    directories: PeerLimiter,
}

impl WatchLimiter {
    pub(crate) fn new(settings: &Settings) -> Arc<Self> {
        let shared = |(file, usual), set: Option<usize>| {
            let max = set.unwrap_or_else(|| kernel_limit(file).unwrap_or(usual) / USED.1 * USED.0);
            PeerLimiter::new(max, 0)
        };
        Arc::new(WatchLimiter {
            watches: PeerLimiter::new(settings.watches, 0),
            instances: shared(MAX_INSTANCES, settings.watch_instances),
            directories: shared(MAX_WATCHED, settings.watched_directories),
        })
    }

    /// Acquires a permit for a watch.
    pub(crate) fn acquire(&self, peer: Peer) -> Option<PeerPermit> {
        self.watches.acquire(peer)
    }

    /// Returns the permits of a watcher.
    pub(crate) fn of_watcher(self: &Arc<Self>, peer: Peer) -> Arc<dyn WatchPermits> {
        Arc::new(PeerWatchPermits {
            limiter: Arc::clone(self),
            peer,
        })
    }
}

/// The permits of a peer.
struct PeerWatchPermits {
    limiter: Arc<WatchLimiter>,
    peer: Peer,
}

impl WatchPermits for PeerWatchPermits {
    fn instance(&self) -> Option<WatchPermit> {
        boxed(self.limiter.instances.acquire(self.peer)?)
    }

    fn directory(&self) -> Option<WatchPermit> {
        boxed(self.limiter.directories.acquire(self.peer)?)
    }
}

fn boxed(permit: PeerPermit) -> Option<WatchPermit> {
    Some(Box::new(permit))
}

fn kernel_limit(file: &str) -> Option<usize> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
