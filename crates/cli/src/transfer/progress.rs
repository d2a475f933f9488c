//! Counters of a copy.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Progress of a copy, shared by the copy tasks and the progress bar.
#[derive(Debug, Default)]
pub(crate) struct CopyProgress {
    /// Updated for every block, so not behind the lock.
    bytes: AtomicU64,
    totals: Mutex<Totals>,
}

/// A snapshot of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Bytes copied.
    pub(crate) bytes: u64,
    /// Bytes found so far.
    pub(crate) bytes_found: u64,
    pub(crate) files: u64,
    pub(crate) files_found: u64,
    /// Files that were not copied.
    pub(crate) failed: u64,
    /// The walk is complete.
    pub(crate) all_found: bool,
}

impl CopyProgress {
    pub(super) fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Subtracts bytes that have to be copied again.
    pub(super) fn subtract_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn file_found(&self, size: u64) {
        let mut totals = self.totals.lock();
        totals.files_found += 1;
        totals.bytes_found += size;
    }

    pub(super) fn file_copied(&self) {
        self.totals.lock().files += 1;
    }

    pub(super) fn file_failed(&self) {
        self.totals.lock().failed += 1;
    }

    pub(super) fn all_found(&self) {
        self.totals.lock().all_found = true;
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals {
            bytes: self.bytes.load(Ordering::Relaxed),
            ..*self.totals.lock()
        }
    }
}
