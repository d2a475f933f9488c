//! The placeholders of this server, shared by its sandboxed processes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::PlaceholderError;
use super::directory::{self, OPEN_FLAGS, WritableGuard};
use super::lock_carrier::{LockCarrier, LockCarriers, max_in_flight};
use super::watcher::Watcher;
use crate::linux::helper::HelperCommand;
use crate::linux::nofollow;

/// How often creation is retried when another server removes the placeholder at the same time.
const ATTEMPTS: usize = 64;

/// The placeholders of this server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(in crate::linux) struct Placeholders(Arc<Shared>);

/// The state of all placeholders of this server.
#[derive(Debug, Default)]
struct Shared {
    /// Placeholders that exist, and paths where one is being created or removed. Locked only for lookups.
    table: Mutex<HashMap<PathBuf, Entry>>,
    /// How many sets have each path, also while they are being created or removed. Locked only for
    /// lookups, because every file operation of a sandboxed worker reads it.
    users: Mutex<HashMap<PathBuf, usize>>,
    lock_carriers: LockCarriers,
    watcher: Watcher,
}

/// The state of one path.
#[derive(Debug, Default)]
struct Entry {
    placeholder: Weak<Placeholder>,
    /// Locked while the directory is created or removed, which takes as long as its file system does. The
    /// lock of a directory is taken before those of paths in it.
    changing: Arc<Mutex<()>>,
}

/// One placeholder. The last reference is dropped while its path is locked.
#[derive(Debug)]
pub(super) struct Placeholder {
    path: PathBuf,
    parent: OwnedFd,
    name: OsString,
    /// Holds a shared lock, if the file system supports locks.
    directory: OwnedFd,
    /// The placeholder of this server that contains this placeholder.
    outer: Option<Arc<Placeholder>>,
}

/// The placeholders of one sandboxed process. Releases them when dropped.
#[derive(Debug)]
pub(in crate::linux) struct PlaceholderSet {
    all: Placeholders,
    placeholders: Vec<Arc<Placeholder>>,
    /// Released before the placeholders, whose addresses are its key.
    lock_carrier: Option<Arc<LockCarrier>>,
    /// Counted in [`Shared::users`] until the placeholders are removed.
    paths: Vec<PathBuf>,
}

impl Placeholders {
    /// Creates an empty set of placeholders that are removed even if the server is killed, by a process with
    /// this program.
    pub(in crate::linux) fn new(command: HelperCommand) -> Self {
        Placeholders(Arc::new(Shared {
            watcher: Watcher::new(command),
            ..Shared::default()
        }))
    }

    /// Creates placeholders at `paths`, or shares existing placeholders. On failure none is left.
    pub(in crate::linux) fn acquire(
        &self,
        paths: &[PathBuf],
    ) -> Result<PlaceholderSet, PlaceholderError> {
        let mut users = self.0.users.lock();
        for path in paths {
            let count = users.entry(path.clone()).or_default();
            *count += 1;
            if *count == 1 {
                self.0.watcher.add(path, &users);
            }
        }
        drop(users);
        let mut set = PlaceholderSet {
            all: self.clone(),
            placeholders: Vec::new(),
            lock_carrier: None,
            paths: paths.to_vec(),
        };
        for path in paths {
            set.placeholders.push(self.acquire_one(path)?);
        }
        Ok(set)
    }

    /// Returns the paths of all placeholders that exist, without blocking.
    pub(in crate::linux) fn paths(&self) -> Vec<PathBuf> {
        let table = self.0.table.lock();
        let existing = table
            .iter()
            .filter(|(_, entry)| entry.placeholder.strong_count() > 0);
        existing.map(|(path, _)| path.clone()).collect()
    }

    /// Returns the paths where placeholders of sets may exist, without blocking.
    pub(in crate::linux) fn possible_paths(&self) -> Vec<PathBuf> {
        self.0.users.lock().keys().cloned().collect()
    }

    /// Creates a placeholder or shares an existing one. Locks the directory too, in case it is a placeholder
    /// that is being removed.
    fn acquire_one(&self, path: &Path) -> Result<Arc<Placeholder>, PlaceholderError> {
        let acquire = || self.while_locked(path, || self.acquire_locked(path));
        match path.parent() {
            Some(directory) => self.while_locked(directory, acquire),
            None => acquire(),
        }
    }

    fn acquire_locked(&self, path: &Path) -> Result<Arc<Placeholder>, PlaceholderError> {
        let existing = self.find(path);
        // If it was removed or renamed from outside, its users keep it and a new one is created.
        if let Some(existing) = existing.filter(|existing| existing.is_at_its_path()) {
            return Ok(existing);
        }
        // Only a placeholder from the table: a directory that merely looks like one may be a user's,
        // and must not be removed with its contents.
        let outer = path.parent().and_then(|parent| self.find(parent));
        let mut placeholder = Placeholder::create(path)?;
        placeholder.outer = outer.filter(|outer| outer.is_at_its_path());
        if let Some(outer) = &placeholder.outer {
            outer.mark_again();
        }
        let placeholder = Arc::new(placeholder);
        let mut table = self.0.table.lock();
        let entry = table.entry(path.to_owned()).or_default();
        entry.placeholder = Arc::downgrade(&placeholder);
        Ok(placeholder)
    }

    #[cfg(test)]
    pub(super) fn table_is_empty(&self) -> bool {
        self.0.table.lock().is_empty()
    }

    fn find(&self, path: &Path) -> Option<Arc<Placeholder>> {
        self.0.table.lock().get(path)?.placeholder.upgrade()
    }

    /// Calls `change` while no other thread changes what is at a path. A file system that hangs stops only
    /// those that need the same path or paths directly in it.
    pub(super) fn while_locked<T>(&self, path: &Path, change: impl FnOnce() -> T) -> T {
        let mut table = self.0.table.lock();
        let changing = Arc::clone(&table.entry(path.to_owned()).or_default().changing);
        drop(table);
        let guard = changing.lock();
        let result = change();
        drop(guard);
        drop(changing);
        let mut table = self.0.table.lock();
        let is_unused = |entry: &Entry| {
            entry.placeholder.strong_count() == 0 && Arc::strong_count(&entry.changing) == 1
        };
        if table.get(path).is_some_and(is_unused) {
            table.remove(path);
        }
        result
    }
}

/// Removed placeholders whose descriptors are still open. Dropping it closes them, which takes longer
/// than removing the directories.
#[derive(Debug)]
pub struct RemovedPlaceholders {
    _removed: Vec<Placeholder>,
}

impl PlaceholderSet {
    /// Returns a descriptor that keeps the placeholders locked while it is open. Bubblewrap inherits it,
    /// so that the locks outlive a killed server. None if there are no placeholders.
    pub(in crate::linux) fn carry_locks(&mut self) -> Result<Option<OwnedFd>, PlaceholderError> {
        let mut locks = Vec::new();
        let mut open: Vec<_> = self.placeholders.iter().collect();
        while let Some(placeholder) = open.pop() {
            // The number is unique while this set exists.
            let number = Arc::as_ptr(placeholder).addr();
            locks.push((number, placeholder.directory.as_fd()));
            open.extend(&placeholder.outer);
        }
        let (count, limit) = (locks.len(), max_in_flight());
        let carrier = self.all.0.lock_carriers.get_or_create(&locks, limit);
        let carrier = carrier.map_err(|errno| match errno {
            Errno::TOOMANYREFS => PlaceholderError::TooMany { count, limit },
            errno => PlaceholderError::Locks(errno.into()),
        })?;
        let copy = carrier.as_ref().map(|carrier| carrier.socket.try_clone());
        self.lock_carrier = carrier;
        copy.transpose().map_err(PlaceholderError::Locks)
    }

    pub(in crate::linux) fn is_empty(&self) -> bool {
        self.placeholders.is_empty()
    }

    /// Releases all placeholders. Removes those that no other process uses.
    pub(in crate::linux) fn release(mut self) -> RemovedPlaceholders {
        self.remove()
    }

    fn remove(&mut self) -> RemovedPlaceholders {
        self.lock_carrier = None;
        let mut removed = Vec::new();
        let mut open: Vec<_> = self
            .placeholders
            .drain(..)
            .map(|one| (one, false))
            .collect();
        while let Some((placeholder, is_outer)) = open.pop() {
            let path = placeholder.path.clone();
            let last = self.all.while_locked(&path, || {
                if is_outer {
                    placeholder.mark_again();
                }
                let last = Arc::into_inner(placeholder)?;
                last.remove();
                Some(last)
            });
            if let Some(mut last) = last {
                open.extend(last.outer.take().map(|outer| (outer, true)));
                removed.push(last);
            }
        }
        RemovedPlaceholders { _removed: removed }
    }
}

impl Drop for PlaceholderSet {
    fn drop(&mut self) {
        self.remove();
        let mut users = self.all.0.users.lock();
        for path in &self.paths {
            if let Some(count) = users.get_mut(path) {
                *count -= 1;
                if *count == 0 {
                    users.remove(path);
                    self.all.0.watcher.remove(path);
                }
            }
        }
    }
}

impl Placeholder {
    /// Creates and locks a placeholder, or locks an existing one.
    pub(super) fn create(path: &Path) -> Result<Self, PlaceholderError> {
        let failed = |errno: Errno| PlaceholderError::Os {
            path: path.to_owned(),
            source: errno.into(),
        };
        let appeared = || PlaceholderError::Appeared(path.to_owned());
        let (parent, name) = path
            .parent()
            .zip(path.file_name())
            .ok_or_else(|| failed(Errno::INVAL))?;
        let parent = nofollow::open(parent).map_err(|error| failed(error.into()))?;
        for _ in 0..ATTEMPTS {
            directory::create(&parent, name.as_ref()).map_err(failed)?;
            let directory = match rustix::fs::openat(&parent, name, OPEN_FLAGS, Mode::empty()) {
                Ok(directory) => directory,
                Err(Errno::NOENT) => continue,
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(appeared()),
                Err(errno) => return Err(failed(errno)),
            };
            if directory::lock_shared(&directory) && directory::is_at(&directory, &parent, name) {
                if !directory::is_marked_and_empty(&directory).map_err(failed)? {
                    return Err(appeared());
                }
                return Ok(Placeholder {
                    path: path.to_owned(),
                    parent,
                    name: name.to_owned(),
                    directory,
                    outer: None,
                });
            }
            // Another server is removing it.
            std::thread::yield_now();
        }
        Err(failed(Errno::BUSY))
    }

    fn is_at_its_path(&self) -> bool {
        let parent = self.path.parent().map(nofollow::open);
        let parent = parent.and_then(Result::ok);
        parent.is_some_and(|parent| directory::is_at(&self.directory, &parent, &self.name))
    }

    /// Restores the mark after an inner placeholder was created or removed, if nothing else is inside.
    fn mark_again(&self) {
        if directory::is_empty(&self.directory) == Ok(true) {
            // On failure it counts as a user's directory and stays.
            let _ = directory::mark(&self.directory);
        }
    }

    /// Removes the directory if no other server holds it and it is still empty.
    fn remove(&self) {
        let _guard = WritableGuard::new(&self.parent);
        directory::remove(&self.directory, &self.parent, &self.name);
    }
}
