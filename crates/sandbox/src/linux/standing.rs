//! Where placeholders may stand, for whoever must not wait for a file system.
//!
//! Making and removing one takes as long as the file system does, and whoever does it has the table of
//! all of them meanwhile. This one is looked into for a moment and no longer; whether something stands
//! there is for the asker to find out.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The paths, with how many need each; clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing(Arc<Mutex<HashMap<PathBuf, usize>>>);

/// Some of the paths, until this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    all: Standing,
    paths: Vec<PathBuf>,
}

impl Standing {
    pub(super) fn share(&self, paths: &[PathBuf]) -> Share {
        let mut all = self.lock();
        for path in paths {
            *all.entry(path.clone()).or_default() += 1;
        }
        Share {
            all: self.clone(),
            paths: paths.to_vec(),
        }
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        for path in &self.paths {
            if let Some(count) = all.get_mut(path) {
                *count -= 1;
                if *count == 0 {
                    all.remove(path);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_there_for_as_long_as_anybody_needs_it() {
        let all = Standing::default();
        let (one, other) = (PathBuf::from("/a"), PathBuf::from("/b"));
        let first = all.share(&[one.clone(), other]);
        let second = all.share(std::slice::from_ref(&one));
        assert_eq!(all.paths().len(), 2);
        drop(first);
        assert_eq!(all.paths(), [one]);
        drop(second);
        assert!(all.paths().is_empty());
    }
}
