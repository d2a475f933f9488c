//! What a copy has come to.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// Counts what is copied; shared by those who copy and those who watch.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Touched for every block, so it isn't behind the lock.
    bytes: AtomicU64,
    rest: Mutex<Totals>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Bytes that were copied,
    pub(crate) bytes: u64,
    /// and bytes there are to copy, as far as is known.
    pub(crate) bytes_found: u64,
    pub(crate) files: u64,
    pub(crate) files_found: u64,
    /// What was not copied.
    pub(crate) failed: u64,
    /// Nothing more will be found.
    pub(crate) all_found: bool,
}

impl Tally {
    pub(super) fn moved(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What was copied has to be copied again.
    pub(super) fn lost(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn found(&self, size: u64) {
        let mut rest = self.rest();
        rest.files_found += 1;
        rest.bytes_found += size;
    }

    pub(super) fn done(&self) {
        self.rest().files += 1;
    }

    pub(super) fn failed(&self) {
        self.rest().failed += 1;
    }

    pub(super) fn all_found(&self) {
        self.rest().all_found = true;
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals {
            bytes: self.bytes.load(Ordering::Relaxed),
            ..*self.rest()
        }
    }

    fn rest(&self) -> MutexGuard<'_, Totals> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
