//! The changes of one watch that were gathered.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The approximate memory of a path besides its text.
const PATH_BYTES: usize = 64;

/// The memory for the changes of all watches of a watcher. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct ChangeBudget {
    free: Arc<AtomicUsize>,
}

impl ChangeBudget {
    pub(super) fn new(bytes: usize) -> Self {
        ChangeBudget {
            free: Arc::new(AtomicUsize::new(bytes)),
        }
    }

    fn take(&self, bytes: usize) -> bool {
        let subtract = |free: usize| free.checked_sub(bytes);
        let taken = self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
        taken.is_ok()
    }
}

/// Paths that have changed.
#[derive(Debug)]
pub struct Changes {
    /// The paths, sorted and without duplicates.
    paths: BTreeSet<PathBuf>,
    missed: bool,
    bytes: usize,
    budget: ChangeBudget,
}

impl Changes {
    pub(super) fn new(budget: &ChangeBudget) -> Self {
        Changes {
            paths: BTreeSet::new(),
            missed: false,
            bytes: 0,
            budget: budget.clone(),
        }
    }

    /// The paths, sorted and without duplicates.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter()
    }

    /// Whether other changes may have been lost.
    #[must_use]
    pub fn missed(&self) -> bool {
        self.missed
    }

    /// The approximate memory of the paths.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops all paths but the first, for lack of memory.
    pub fn lose(&mut self) {
        let first = self.paths.pop_first();
        *self = Changes::new(&self.budget);
        self.paths.extend(first);
        self.missed = true;
    }

    /// Records that changes may have been lost.
    pub(super) fn miss(&mut self) {
        self.missed = true;
    }

    /// Adds later changes.
    pub fn merge(&mut self, mut later: Changes) {
        self.missed |= later.missed;
        let paths = std::mem::take(&mut later.paths);
        drop(later);
        for path in paths {
            self.add(path);
        }
    }

    /// Adds a path. It is lost if there is no memory for it, unless it is the first.
    pub(super) fn add(&mut self, path: PathBuf) {
        if self.paths.contains(&path) {
            return;
        }
        let bytes = path.as_os_str().len() + PATH_BYTES;
        if self.paths.is_empty() {
            self.paths.insert(path);
        } else if self.budget.take(bytes) {
            self.bytes += bytes;
            self.paths.insert(path);
        } else {
            self.missed = true;
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.budget.free.fetch_add(self.bytes, Ordering::Relaxed);
    }
}
