//! Directories that a server has granted for writing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{Access, Origin, Plan};

/// How far the clock of a file system may be behind ours, its granularity included.
const CLOCK_MARGIN: Duration = Duration::from_secs(2);

/// The directories that plans of this server have made writable, also of processes that have ended, each
/// with the time of its first grant.
///
/// A process may have planted symbolic links there, which must not decide what the next one is granted.
/// The record is bounded: beyond the limit, the directory with most entries replaces them.
#[derive(Clone, Debug)]
pub struct GrantedRoots {
    roots: BTreeMap<PathBuf, SystemTime>,
    limit: usize,
}

impl Default for GrantedRoots {
    fn default() -> Self {
        GrantedRoots::new(4096)
    }
}

impl GrantedRoots {
    /// Creates an empty record of up to `limit` directories.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        GrantedRoots {
            roots: BTreeMap::new(),
            limit,
        }
    }

    /// Records the writable directories of a plan, before a process with this plan starts.
    pub fn record(&mut self, plan: &Plan, now: SystemTime) {
        let time = now.checked_sub(CLOCK_MARGIN).unwrap_or(now);
        for root in writable(plan) {
            self.insert(root, time);
        }
    }

    fn insert(&mut self, root: &Path, time: SystemTime) {
        if root.ancestors().any(|above| self.roots.contains_key(above)) {
            return;
        }
        // Directories in this one keep their earlier times.
        self.roots.insert(root.to_owned(), time);
        while self.roots.len() > self.limit && self.merge() {}
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
        let mut granted = GrantedRoots::new(3);
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
