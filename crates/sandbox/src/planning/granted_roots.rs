//! Directories that a server has granted for writing.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::{Access, Origin, Plan};

/// The directories that plans of this server have made writable, also of processes that have ended.
///
/// A process may have planted symbolic links there, which must not decide what the next one is granted.
/// The record is bounded: beyond the limit, the directory with most entries replaces them.
#[derive(Clone, Debug)]
pub struct GrantedRoots {
    roots: BTreeSet<PathBuf>,
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
            roots: BTreeSet::new(),
            limit,
        }
    }

    /// Records the writable directories of a plan.
    pub fn record(&mut self, plan: &Plan) {
        for root in writable(plan) {
            self.insert(root.to_owned());
        }
    }

    /// Returns whether all writable directories of a plan are recorded.
    pub(crate) fn has_all(&self, plan: &Plan) -> bool {
        writable(plan).all(|root| self.has(root))
    }

    fn has(&self, root: &Path) -> bool {
        root.ancestors().any(|above| self.roots.contains(above))
    }

    fn insert(&mut self, root: PathBuf) {
        if self.has(&root) {
            return;
        }
        self.roots.retain(|below| !below.starts_with(&root));
        self.roots.insert(root);
        if self.roots.len() > self.limit {
            self.merge();
        }
    }

    /// Replaces the directories with the most common parent by that parent.
    fn merge(&mut self) {
        let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
        for parent in self.roots.iter().filter_map(|root| root.parent()) {
            *counts.entry(parent).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        if let Some((parent, _)) = most {
            self.insert(parent.to_owned());
        }
    }

    /// Returns whether a process may have changed what is at a path.
    pub(super) fn has_above(&self, path: &Path) -> bool {
        path.parent().is_some_and(|parent| self.has(parent))
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

    #[test]
    fn record_is_bounded_and_forgets_nothing() {
        let mut granted = GrantedRoots::new(3);
        for root in ["/srv/a", "/tmp/1", "/srv/a/b", "/tmp/2", "/tmp/3"] {
            granted.insert(root.into());
        }
        assert!(granted.roots.len() <= 3);
        for below in ["/srv/a/x", "/srv/a/b/x", "/tmp/1/x", "/tmp/2/x", "/tmp/3/x"] {
            assert!(granted.has_above(Path::new(below)), "{below}");
        }
        // The root itself can't be replaced from below.
        assert!(!granted.has_above(Path::new("/srv/a")));
        assert!(!granted.has_above(Path::new("/srv/b/x")));
        assert!(granted.has_above(Path::new("/tmp/4")), "merged");
    }
}
