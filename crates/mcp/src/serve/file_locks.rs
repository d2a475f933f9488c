//! Locks that serialize changes of a file.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Weak},
};

use outpost_client::Files;
use parking_lot::Mutex;
use tokio::sync::{Mutex as FileLock, OwnedMutexGuard};

/// One lock per file. An edit reads, changes and writes the file; a concurrent change
/// would be lost.
#[derive(Default)]
pub(super) struct FileLocks {
    /// By canonical path, as long as a lock is held or waited for.
    locks: Mutex<BTreeMap<PathBuf, Weak<FileLock<()>>>>,
}

impl FileLocks {
    /// Locks a file until the guard is dropped.
    pub(super) async fn lock(&self, files: &Files, path: PathBuf) -> OwnedMutexGuard<()> {
        // A file has one lock, whatever links lead to it. A path that can't be resolved is
        // used as it is; the file operation that follows reports the error.
        let path = files.canonicalize(&path).await.unwrap_or(path);
        self.get(path).lock_owned().await
    }

    fn get(&self, path: PathBuf) -> Arc<FileLock<()>> {
        let mut locks = self.locks.lock();
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(&path).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::new(FileLock::new(()));
        locks.insert(path, Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_is_shared_per_path_and_dropped_after_use() {
        let locks = FileLocks::default();
        let first = locks.get("/a".into());
        assert!(Arc::ptr_eq(&first, &locks.get("/a".into())));
        assert!(!Arc::ptr_eq(&first, &locks.get("/b".into())));
        drop(first);
        let _other = locks.get("/c".into());
        assert_eq!(locks.locks.lock().len(), 1);
    }
}
