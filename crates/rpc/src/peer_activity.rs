//! Evidence that the peer of a connection is alive.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// Counts successful reads, as evidence that the peer is alive. Clones share the counter.
#[derive(Clone, Debug, Default)]
pub struct PeerActivity {
    shared: Arc<ReadCounter>,
}

/// The number of reads and of pauses, shared by the clones.
#[derive(Debug, Default)]
struct ReadCounter {
    reads: AtomicU64,
    /// Number of [`PausedReads`].
    pauses: AtomicUsize,
    /// Notified after each read.
    changed: Notify,
}

impl PeerActivity {
    /// Returns the number of reads so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.shared.reads.load(Ordering::Acquire)
    }

    /// Waits until the read count differs from `count`.
    pub async fn changed_from(&self, count: u64) {
        loop {
            // Created before the check, so that a read in between still wakes it.
            let changed = self.shared.changed.notified();
            if self.count() != count {
                return;
            }
            changed.await;
        }
    }

    /// Records that the connection is not read until the guard is dropped: what the peer sent may be
    /// there, unread.
    #[must_use]
    pub fn pause(&self) -> PausedReads {
        self.shared.pauses.fetch_add(1, Ordering::AcqRel);
        PausedReads {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Returns whether the connection is not read now.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.shared.pauses.load(Ordering::Acquire) > 0
    }

    pub(crate) fn increment(&self) {
        self.shared.reads.fetch_add(1, Ordering::AcqRel);
        self.shared.changed.notify_waiters();
    }
}

/// A time in which the connection is not read. Ends on drop.
#[derive(Debug)]
pub struct PausedReads {
    shared: Arc<ReadCounter>,
}

impl Drop for PausedReads {
    fn drop(&mut self) {
        self.shared.pauses.fetch_sub(1, Ordering::AcqRel);
    }
}
