//! Directories that were granted for writing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{Access, Origin, Plan};

/// How far the clock of a file system may be behind ours, its granularity included.
const CLOCK_MARGIN: Duration = Duration::from_secs(2);

/// The directories that plans have made writable, also of processes that have ended, each with the time of
/// its first grant.
///
/// A process may have planted symbolic links there, which must not extend the grants of a later process.
/// The record is bounded: beyond a limit, the directory with the most entries replaces its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedRoots {
    roots: BTreeMap<PathBuf, SystemTime>,
    /// The sum of the paths' lengths.
    bytes: usize,
    max_roots: usize,
    max_bytes: usize,
}

impl Default for GrantedRoots {
    fn default() -> Self {
        GrantedRoots::new(4096, 1 << 20)
    }
}

impl GrantedRoots {
    /// Creates an empty record of up to `max_roots` directories, whose paths have up to `max_bytes` together.
    #[must_use]
    pub fn new(max_roots: usize, max_bytes: usize) -> Self {
        GrantedRoots {
            roots: BTreeMap::new(),
            bytes: 0,
            max_roots,
            max_bytes,
        }
    }

    /// Records the writable directories of a plan, before a process with this plan starts. Returns whether
    /// one was missing.
    pub fn record(&mut self, plan: &Plan, now: SystemTime) -> bool {
        let time = now.checked_sub(CLOCK_MARGIN).unwrap_or(now);
        let inserted = writable(plan).filter(|root| self.insert(root, time));
        inserted.count() > 0
    }

    /// Records a directory that was first granted at `time`. Returns whether it was missing.
    pub(crate) fn insert(&mut self, root: &Path, time: SystemTime) -> bool {
        let is_covered = |above| self.roots.get(above).is_some_and(|first| *first <= time);
        if root.ancestors().any(is_covered) {
            return false;
        }
        // Directories in this directory keep their earlier times.
        if self.roots.insert(root.to_owned(), time).is_none() {
            self.bytes += root.as_os_str().len();
        }
        let is_full =
            |roots: &Self| roots.roots.len() > roots.max_roots || roots.bytes > roots.max_bytes;
        while is_full(self) && self.merge() {}
        true
    }

    /// Lists the directories with the times of their first grants.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&Path, SystemTime)> {
        self.roots
            .iter()
            .map(|(root, time)| (root.as_path(), *time))
    }

    /// Replaces all directories in the most common parent by that parent, with the earliest time of them.
    fn merge(&mut self) -> bool {
        let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
        for parent in self.roots.keys().filter_map(|root| root.parent()) {
            *counts.entry(parent).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let Some(parent) = most.map(|(parent, _)| parent.to_owned()) else {
            return false;
        };
        let mut earliest = None;
        self.roots.retain(|root, time| {
            let is_merged = root.starts_with(&parent);
            if is_merged {
                earliest = Some(earliest.map_or(*time, |earliest| (*time).min(earliest)));
            }
            !is_merged
        });
        self.roots.extend(earliest.map(|time| (parent, time)));
        self.bytes = self.roots.keys().map(|root| root.as_os_str().len()).sum();
        true
    }

    /// Returns since when a process may have changed what is at a path, if one may have.
    pub(super) fn first_grant_above(&self, path: &Path) -> Option<SystemTime> {
        let above = path.ancestors().skip(1);
        above
            .filter_map(|above| self.roots.get(above))
            .min()
            .copied()
    }
}

/// Returns the directories and files that a plan makes writable.
fn writable(plan: &Plan) -> impl Iterator<Item = &Path> {
    let rules = plan.rules.iter();
    let writable =
        rules.filter(|rule| rule.access == Access::Write && rule.origin != Origin::Pinned);
    writable.map(|rule| rule.path.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn first_grant(granted: &GrantedRoots, path: &str) -> Option<SystemTime> {
        granted.first_grant_above(Path::new(path))
    }

    #[test]
    fn record_is_bounded_and_forgets_nothing() {
        let mut granted = GrantedRoots::new(3, 1000);
        let roots = ["/srv/a", "/tmp/1", "/srv/a/b", "/tmp/2", "/tmp/3"];
        for (root, time) in roots.into_iter().zip(1..) {
            granted.insert(Path::new(root), at(time));
        }
        assert!(granted.roots.len() <= 3);
        for below in ["/srv/a/x", "/srv/a/b/x"] {
            assert_eq!(first_grant(&granted, below), Some(at(1)), "{below}");
        }
        // Merged, with the earliest time.
        for below in ["/tmp/1/x", "/tmp/2/x", "/tmp/3/x", "/tmp/4"] {
            assert_eq!(first_grant(&granted, below), Some(at(2)), "{below}");
        }
        // The root itself can't be replaced from below.
        assert_eq!(first_grant(&granted, "/srv/a"), None);
        assert_eq!(first_grant(&granted, "/srv/b/x"), None);
    }

    #[test]
    fn record_is_bounded_in_bytes() {
        let mut granted = GrantedRoots::new(100, 16);
        for root in ["/a/1234", "/a/5678", "/a/9abc", "/b"] {
            granted.insert(Path::new(root), at(1));
        }
        let roots: Vec<_> = granted.iter().map(|(root, _)| root).collect();
        assert_eq!(roots, [Path::new("/a"), Path::new("/b")]);
        assert_eq!(granted.bytes, 4);
    }

    /// As of a record that another process has written.
    #[test]
    fn earlier_time_replaces_a_later_one() {
        let mut granted = GrantedRoots::default();
        for (root, time, inserted) in [
            ("/ws", 5, true),
            ("/ws/a", 5, false),
            ("/ws", 3, true),
            ("/ws/a", 2, true),
        ] {
            assert_eq!(
                granted.insert(Path::new(root), at(time)),
                inserted,
                "{root}"
            );
        }
        assert_eq!(first_grant(&granted, "/ws/link"), Some(at(3)));
        assert_eq!(first_grant(&granted, "/ws/a/link"), Some(at(2)));
    }

    #[test]
    fn later_grant_of_a_directory_above_keeps_earlier_times() {
        let mut granted = GrantedRoots::default();
        for (root, time) in [("/ws", 1), ("/", 2), ("/ws", 3), ("/srv", 4)] {
            granted.insert(Path::new(root), at(time));
        }
        assert_eq!(first_grant(&granted, "/ws/link"), Some(at(1)));
        assert_eq!(first_grant(&granted, "/srv/link"), Some(at(2)));
        assert_eq!(granted.roots.len(), 2);
    }
}
