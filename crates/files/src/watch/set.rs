//! All watches of a watcher, on one inotify instance.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rustix::fd::BorrowedFd;
use rustix::fs::inotify::ReadFlags;

use super::changes::ChangeBudget;
use super::inotify::Inotify;
use super::missing::MissingWatch;
use super::path_watch::PathWatch;
use super::permits::PermitSource;
use super::{MissingPathsRequest, WatchError, WatchKey, WatchLimits, WatchListener, WatchOptions};

/// The watches of a watcher. The instance exists only while there is one, because the kernel limits
/// their number per user.
pub(super) struct WatchSet {
    listener: Arc<dyn WatchListener>,
    limits: WatchLimits,
    permits: PermitSource,
    budget: ChangeBudget,
    inotify: Option<Inotify>,
    missing: Option<MissingWatch>,
    paths: HashMap<WatchKey, PathWatch>,
}

impl WatchSet {
    pub(super) fn new(
        listener: Arc<dyn WatchListener>,
        limits: WatchLimits,
        permits: PermitSource,
    ) -> Self {
        WatchSet {
            listener,
            budget: ChangeBudget::new(limits.change_bytes),
            limits,
            permits,
            inotify: None,
            missing: None,
            paths: HashMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.missing.is_none()
    }

    pub(super) fn instance(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(Inotify::as_fd)
    }

    fn open(&mut self) -> Result<&mut Inotify, WatchError> {
        let inotify = match self.inotify.take() {
            Some(inotify) => inotify,
            None => Inotify::new(self.limits.directories, self.permits.clone())?,
        };
        Ok(self.inotify.insert(inotify))
    }

    fn close_unused(&mut self) {
        if self.is_empty() {
            self.inotify = None;
        }
    }

    pub(super) fn watch(
        &mut self,
        key: WatchKey,
        path: PathBuf,
        options: WatchOptions,
    ) -> Result<(), WatchError> {
        let limit = self.limits.watches;
        if self.paths.len() >= limit {
            return Err(WatchError::TooManyWatches { limit });
        }
        let budget = self.budget.clone();
        let armed = self
            .open()
            .and_then(|inotify| PathWatch::arm(inotify, path, options, key, &budget));
        let armed = armed.map(|watch| _ = self.paths.insert(key, watch));
        self.close_unused();
        armed
    }

    pub(super) fn unwatch(&mut self, key: WatchKey) {
        if let (Some(watch), Some(inotify)) = (self.paths.remove(&key), &mut self.inotify) {
            watch.release(inotify);
        }
        self.close_unused();
    }

    /// Replaces the watch of missing paths. Returns whether the new paths are watched.
    pub(super) fn watch_missing(&mut self, key: WatchKey, paths: &MissingPathsRequest) -> bool {
        self.unwatch_missing();
        let armed = self.open().ok();
        self.missing = armed.and_then(|inotify| MissingWatch::arm(inotify, paths, key));
        self.close_unused();
        self.missing.is_some()
    }

    fn unwatch_missing(&mut self) {
        if let (Some(watch), Some(inotify)) = (self.missing.take(), &mut self.inotify) {
            watch.release(inotify);
        }
    }

    /// Reads the available events.
    pub(super) fn read_events(&mut self) {
        let Some(inotify) = &mut self.inotify else {
            return;
        };
        let mut fired = false;
        for event in inotify.read() {
            if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                fired = true;
                for watch in self.paths.values_mut() {
                    watch.overflowed(inotify);
                }
                continue;
            }
            let missing = self.missing.as_ref();
            fired |= missing.is_some_and(|missing| missing.is_fired_by(&event));
            for user in inotify.users(event.descriptor) {
                if let Some(watch) = self.paths.get_mut(&user) {
                    watch.handle(inotify, &event);
                }
            }
            if event.flags.contains(ReadFlags::IGNORED) {
                inotify.forget(event.descriptor);
            }
        }
        for watch in self.paths.values_mut() {
            watch.refresh(inotify);
        }
        if fired && let Some(missing) = &self.missing {
            self.listener.missing_changed(missing.id);
            self.unwatch_missing();
            self.close_unused();
        }
    }

    /// When the next changes are due.
    pub(super) fn next_report(&self) -> Option<Instant> {
        let first = self.paths.values().filter_map(PathWatch::first_change);
        first.min().map(|first| first + self.limits.gather)
    }

    /// Reports the changes that are due.
    pub(super) fn report(&mut self) {
        let now = Instant::now();
        for (key, watch) in &mut self.paths {
            let due = watch.first_change().map(|first| first + self.limits.gather);
            if let Some(changes) = watch.take_changes(now, due) {
                self.listener.changed(*key, changes);
            }
        }
    }
}
