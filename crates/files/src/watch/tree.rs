//! The directories of one watch whose entries are watched.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::inotify::Descriptor;

/// The largest number of unreadable directories that are known by name.
const MAX_UNREADABLE: usize = 1024;

/// The directories whose entries are watched.
#[derive(Debug, Default)]
pub(super) struct Tree {
    paths: HashMap<Descriptor, PathBuf>,
    descriptors: BTreeMap<PathBuf, Descriptor>,
    /// Directories that were reported as unreadable, and are tried again when they may have changed.
    unreadable: BTreeSet<PathBuf>,
}

impl Tree {
    pub(super) fn insert(&mut self, descriptor: Descriptor, path: PathBuf) {
        if let Some(earlier) = self.paths.insert(descriptor, path.clone()) {
            self.descriptors.remove(&earlier);
        }
        self.unreadable.remove(&path);
        self.descriptors.insert(path, descriptor);
    }

    pub(super) fn remove(&mut self, descriptor: Descriptor) {
        if let Some(path) = self.paths.remove(&descriptor)
            && self.descriptors.get(&path) == Some(&descriptor)
        {
            self.descriptors.remove(&path);
        }
    }

    /// The path of a directory.
    pub(super) fn path(&self, descriptor: Descriptor) -> Option<&PathBuf> {
        self.paths.get(&descriptor)
    }

    pub(super) fn contains(&self, descriptor: Descriptor) -> bool {
        self.paths.contains_key(&descriptor)
    }

    pub(super) fn into_descriptors(self) -> impl Iterator<Item = Descriptor> {
        self.paths.into_keys()
    }

    /// The descriptors of a directory and of those below it, which are next to each other in order.
    pub(super) fn below(&self, path: &Path) -> Vec<Descriptor> {
        let from = self.descriptors.range(path.to_owned()..);
        from.take_while(|(other, _)| other.starts_with(path))
            .map(|(_, descriptor)| *descriptor)
            .collect()
    }

    /// Adds an unreadable directory. Returns whether it is new, or `None` if there are too many.
    pub(super) fn add_unreadable(&mut self, path: &Path) -> Option<bool> {
        if self.unreadable.contains(path) {
            return Some(false);
        }
        let has_space = self.unreadable.len() < MAX_UNREADABLE;
        has_space.then(|| self.unreadable.insert(path.to_owned()))
    }

    /// Removes a directory that is gone from the unreadable ones.
    pub(super) fn remove_unreadable(&mut self, path: &Path) {
        self.unreadable.remove(path);
    }

    /// The unreadable directories at and below a path.
    pub(super) fn unreadable_below(&self, path: &Path) -> Vec<PathBuf> {
        let from = self.unreadable.range(path.to_owned()..);
        from.take_while(|other| other.starts_with(path))
            .cloned()
            .collect()
    }
}
