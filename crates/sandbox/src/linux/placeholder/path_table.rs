//! The paths where placeholders may exist, for callers that must not block.
//!
//! [`Placeholders`](super::Placeholders) holds its lock while it creates and removes directories, which
//! takes as long as the file system does. This table is locked only for lookups.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

/// Counts the users of each path. Clones share the table.
#[derive(Clone, Debug, Default)]
pub(in crate::linux) struct PlaceholderPaths(Arc<Mutex<HashMap<PathBuf, usize>>>);

/// Keeps some paths in the table until dropped.
#[derive(Debug)]
pub(in crate::linux) struct PathLease {
    table: PlaceholderPaths,
    paths: Vec<PathBuf>,
}

impl PlaceholderPaths {
    pub(in crate::linux) fn lease(&self, paths: &[PathBuf]) -> PathLease {
        let mut table = self.0.lock();
        for path in paths {
            *table.entry(path.clone()).or_default() += 1;
        }
        PathLease {
            table: self.clone(),
            paths: paths.to_vec(),
        }
    }

    pub(in crate::linux) fn paths(&self) -> Vec<PathBuf> {
        self.0.lock().keys().cloned().collect()
    }
}

impl Drop for PathLease {
    fn drop(&mut self) {
        let mut table = self.table.0.lock();
        for path in &self.paths {
            if let Some(count) = table.get_mut(path) {
                *count -= 1;
                if *count == 0 {
                    table.remove(path);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_listed_until_the_last_lease_drops() {
        let table = PlaceholderPaths::default();
        let (a, b) = (PathBuf::from("/a"), PathBuf::from("/b"));
        let first = table.lease(&[a.clone(), b]);
        let second = table.lease(std::slice::from_ref(&a));
        assert_eq!(table.paths().len(), 2);
        drop(first);
        assert_eq!(table.paths(), [a]);
        drop(second);
        assert!(table.paths().is_empty());
    }
}
