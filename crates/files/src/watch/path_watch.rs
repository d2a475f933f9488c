//! Watches one path: a file, a directory, or a path that does not exist yet.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::inotify::{ReadFlags, WatchFlags};

use super::changes::{ChangeBudget, Changes};
use super::inotify::{CONTENT, Descriptor, Event, Inotify, NAME_CHANGES, SELF_GONE};
use super::resolution::{Position, Resolution, is_gone};
use super::tree::Tree;
use super::{WatchError, WatchKey, WatchOptions};

/// Events after which a file counts as changed.
const CHANGES: ReadFlags = NAME_CHANGES
    .union(ReadFlags::ATTRIB)
    .union(ReadFlags::MODIFY);

/// A watched path. It is resolved again after every change on the way to it.
#[derive(Debug)]
pub(super) struct PathWatch {
    key: WatchKey,
    path: PathBuf,
    options: WatchOptions,
    budget: ChangeBudget,
    resolution: Resolution,
    tree: Tree,
    /// The path led to a file once. A link without a target is only followed from then on.
    was_found: bool,
    is_stale: bool,
    changes: Changes,
    /// When the first of the gathered changes was seen.
    first_change: Option<Instant>,
}

impl PathWatch {
    pub(super) fn arm(
        inotify: &mut Inotify,
        path: PathBuf,
        options: WatchOptions,
        key: WatchKey,
        budget: &ChangeBudget,
    ) -> Result<Self, WatchError> {
        let mut watch = PathWatch {
            key,
            path,
            options,
            budget: budget.clone(),
            resolution: Resolution::default(),
            tree: Tree::default(),
            was_found: false,
            is_stale: false,
            changes: Changes::new(budget),
            first_change: None,
        };
        match watch.resolve(inotify, false) {
            Ok(()) => Ok(watch),
            Err(error) => {
                watch.release(inotify);
                Err(error)
            }
        }
    }

    /// Resolves the path, and watches what it leads to. `report` says whether that is a change if it
    /// is another file than before.
    fn resolve(&mut self, inotify: &mut Inotify, report: bool) -> Result<(), WatchError> {
        self.is_stale = false;
        let mut resolution = Resolution::default();
        let resolved = resolution.resolve(inotify, &self.path, self.was_found, self.key);
        let earlier = std::mem::replace(&mut self.resolution, resolution);
        self.was_found |= self.resolution.target.is_some();
        let is_same = earlier.target == self.resolution.target;
        if !is_same {
            self.release_tree(inotify);
            if report {
                self.report(self.path.clone());
            }
        }
        let released = earlier.target.and_then(|target| target.descriptor);
        for descriptor in earlier.directories.into_iter().chain(released) {
            self.release_unused(inotify, descriptor);
        }
        resolved?;
        match &self.resolution.target {
            Some(target) if target.is_directory && !is_same => self.add_root(inotify, report),
            _ => Ok(()),
        }
    }

    fn add_root(&mut self, inotify: &mut Inotify, report: bool) -> Result<(), WatchError> {
        let target = self.resolution.target.as_ref();
        let Some(descriptor) = target.and_then(|target| target.descriptor) else {
            return Ok(());
        };
        self.tree.insert(descriptor, self.path.clone());
        self.add_entries(inotify, vec![self.path.clone()], report)
    }

    /// Watches the directories in some watched directories, if the watch is recursive. With `report`
    /// every entry is a change: it may have been created before its directory was watched.
    fn add_entries(
        &mut self,
        inotify: &mut Inotify,
        mut directories: Vec<PathBuf>,
        report: bool,
    ) -> Result<(), WatchError> {
        if !report && !self.options.recursive {
            return Ok(());
        }
        while let Some(directory) = directories.pop() {
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) => {
                    self.skip_unreadable(&directory, error.into());
                    continue;
                }
            };
            for entry in entries {
                let entry = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?.is_dir())));
                let (path, is_directory) = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        self.skip_unreadable(&directory, error.into());
                        continue;
                    }
                };
                if self.options.recursive && is_directory {
                    directories.extend(self.add_directory(inotify, &path)?);
                }
                if report {
                    self.report(path);
                }
            }
        }
        Ok(())
    }

    /// Watches a directory of the tree. Returns it, unless it is gone or cannot be read.
    fn add_directory(
        &mut self,
        inotify: &mut Inotify,
        path: &Path,
    ) -> Result<Option<PathBuf>, WatchError> {
        match inotify.add(path, CONTENT | WatchFlags::ONLYDIR, self.key) {
            Ok(descriptor) => {
                self.tree.insert(descriptor, path.to_owned());
                Ok(Some(path.to_owned()))
            }
            Err(error @ WatchError::Os(_)) => {
                if is_gone(&error) {
                    self.tree.remove_unreadable(path);
                }
                self.skip_unreadable(path, error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reports a directory of the tree that cannot be read, unless it is gone.
    fn skip_unreadable(&mut self, directory: &Path, error: WatchError) {
        if is_gone(&error) {
            return;
        }
        match self.tree.add_unreadable(directory) {
            Some(true) => {
                self.first_change.get_or_insert_with(Instant::now);
                self.changes.add_unreadable(directory.to_owned());
            }
            Some(false) => {}
            None => self.miss(),
        }
    }

    /// Records an event of a descriptor that the watch uses.
    pub(super) fn handle(&mut self, inotify: &mut Inotify, event: &Event) {
        let Event {
            descriptor, flags, ..
        } = *event;
        let is_target = self.is_target(descriptor);
        let Some(name) = &event.name else {
            if is_target || self.resolution.directories.contains(&descriptor) {
                self.is_stale |= flags.intersects(SELF_GONE | ReadFlags::ATTRIB);
            }
            if is_target && flags.intersects(CHANGES | SELF_GONE) {
                self.report(self.path.clone());
            } else if flags.contains(ReadFlags::ATTRIB)
                && let Some(path) = self.tree.path(descriptor)
            {
                self.report(path.clone());
            }
            if flags.contains(ReadFlags::IGNORED) {
                self.forget(descriptor);
            }
            return;
        };
        if let Some(position) = self.resolution.names.get(&(descriptor, name.clone())) {
            let is_end = *position == Position::End;
            self.is_stale |= flags.intersects(NAME_CHANGES);
            if is_end && flags.intersects(CHANGES) {
                self.report(self.path.clone());
            }
        }
        if flags.intersects(CHANGES)
            && let Some(directory) = self.tree.path(descriptor)
        {
            let path = directory.join(name);
            self.report(path.clone());
            if self.options.recursive && flags.contains(ReadFlags::ISDIR) {
                self.follow_directory(inotify, &path, flags);
            }
        }
    }

    /// Follows a directory of the tree that appeared, was moved away or removed, or may have become
    /// readable.
    fn follow_directory(&mut self, inotify: &mut Inotify, path: &Path, flags: ReadFlags) {
        if flags.contains(ReadFlags::MOVED_FROM) {
            for descriptor in self.tree.below(path) {
                self.tree.remove(descriptor);
                self.release_unused(inotify, descriptor);
            }
        }
        if flags.intersects(ReadFlags::MOVED_FROM | ReadFlags::DELETE) {
            for directory in self.tree.unreadable_below(path) {
                self.tree.remove_unreadable(&directory);
            }
        }
        if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            self.add_tree(inotify, path);
        }
        if flags.contains(ReadFlags::ATTRIB) {
            self.retry_unreadable(inotify, path);
        }
    }

    /// Watches a directory with everything below, and reports what is in it.
    fn add_tree(&mut self, inotify: &mut Inotify, path: &Path) {
        let added = self
            .add_directory(inotify, path)
            .and_then(|directory| self.add_entries(inotify, directory.into_iter().collect(), true));
        if added.is_err() {
            self.miss();
        }
    }

    /// Tries the unreadable directories at and below a path again.
    fn retry_unreadable(&mut self, inotify: &mut Inotify, path: &Path) {
        for directory in self.tree.unreadable_below(path) {
            self.add_tree(inotify, &directory);
        }
    }

    /// Records that events may have been lost. Everything is looked up again.
    pub(super) fn overflowed(&mut self, inotify: &mut Inotify) {
        self.miss();
        self.is_stale = true;
        // Directories may have been renamed, so their paths are assigned again.
        self.release_tree(inotify);
        let target = self.resolution.target.take();
        if let Some(descriptor) = target.and_then(|target| target.descriptor) {
            self.release_unused(inotify, descriptor);
        }
    }

    /// Resolves the path again if something on the way to it has changed.
    pub(super) fn refresh(&mut self, inotify: &mut Inotify) {
        if !self.is_stale {
            return;
        }
        // After a loss the client has to look for changes itself.
        match self.resolve(inotify, !self.changes.missed()) {
            Ok(()) => self.retry_unreadable(inotify, &self.path.clone()),
            Err(_) => self.miss(),
        }
    }

    /// Takes the gathered changes once they are due.
    pub(super) fn take_changes(&mut self, now: Instant, due: Option<Instant>) -> Option<Changes> {
        due.filter(|due| *due <= now)?;
        self.first_change = None;
        Some(std::mem::replace(
            &mut self.changes,
            Changes::new(&self.budget),
        ))
    }

    /// When the first of the gathered changes was seen.
    pub(super) fn first_change(&self) -> Option<Instant> {
        self.first_change
    }

    pub(super) fn release(mut self, inotify: &mut Inotify) {
        self.release_tree(inotify);
        let resolution = std::mem::take(&mut self.resolution);
        let target = resolution.target.and_then(|target| target.descriptor);
        for descriptor in resolution.directories.into_iter().chain(target) {
            inotify.release(descriptor, self.key);
        }
    }

    fn release_tree(&mut self, inotify: &mut Inotify) {
        let tree = std::mem::take(&mut self.tree);
        for descriptor in tree.into_descriptors() {
            self.release_unused(inotify, descriptor);
        }
    }

    fn release_unused(&self, inotify: &mut Inotify, descriptor: Descriptor) {
        let is_used = self.tree.contains(descriptor)
            || self.resolution.directories.contains(&descriptor)
            || self.is_target(descriptor);
        if !is_used {
            inotify.release(descriptor, self.key);
        }
    }

    fn is_target(&self, descriptor: Descriptor) -> bool {
        let target = self.resolution.target.as_ref();
        target.is_some_and(|target| target.descriptor == Some(descriptor))
    }

    /// Drops a descriptor that the kernel has removed.
    fn forget(&mut self, descriptor: Descriptor) {
        let is_on_the_way = self.resolution.directories.remove(&descriptor);
        self.is_stale |= is_on_the_way || self.is_target(descriptor);
        self.tree.remove(descriptor);
    }

    fn report(&mut self, path: PathBuf) {
        self.first_change.get_or_insert_with(Instant::now);
        self.changes.add(path);
    }

    fn miss(&mut self) {
        self.report(self.path.clone());
        self.changes.miss();
    }
}
