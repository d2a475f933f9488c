//! The changes of one watch that were gathered.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
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
    unreadable: BTreeSet<PathBuf>,
    missed: bool,
    bytes: usize,
    budget: ChangeBudget,
}

impl Changes {
    pub(super) fn new(budget: &ChangeBudget) -> Self {
        Changes {
            paths: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            missed: false,
            bytes: 0,
            budget: budget.clone(),
        }
    }

    /// The paths, sorted and without duplicates.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter()
    }

    /// Directories that cannot be read, sorted: changes in them are missed until they can be.
    pub fn unreadable(&self) -> impl Iterator<Item = &PathBuf> {
        self.unreadable.iter()
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
        let unreadable = std::mem::take(&mut later.unreadable);
        drop(later);
        for path in paths {
            self.add(path);
        }
        for directory in unreadable {
            self.add_unreadable(directory);
        }
    }

    /// Adds a path. It is lost if there is no memory for it, unless it is the first.
    pub(super) fn add(&mut self, path: PathBuf) {
        if self.paths.contains(&path) {
            return;
        }
        if self.paths.is_empty() || self.take_memory(&path) {
            self.paths.insert(path);
        } else {
            self.missed = true;
        }
    }

    /// Adds a directory that cannot be read.
    pub(super) fn add_unreadable(&mut self, directory: PathBuf) {
        if self.unreadable.contains(&directory) {
            return;
        }
        if self.take_memory(&directory) {
            self.unreadable.insert(directory);
        } else {
            self.missed = true;
        }
    }

    fn take_memory(&mut self, path: &Path) -> bool {
        let bytes = path.as_os_str().len() + PATH_BYTES;
        let taken = self.budget.take(bytes);
        if taken {
            self.bytes += bytes;
        }
        taken
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.budget.free.fetch_add(self.bytes, Ordering::Relaxed);
    }
}
