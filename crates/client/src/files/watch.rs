//! Watches: the public handle, and the unread changes behind it.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{BackendError, FileError};

/// The memory of unread changes. What exceeds it is reported as missed.
const MAX_UNREAD_BYTES: usize = 4 * 1024 * 1024;
/// The approximate memory of a path besides its text.
const PATH_BYTES: usize = 64;

/// How a path is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Watches everything below a directory, not only its entries. Follows no symbolic links there.
    pub recursive: bool,
}

/// Changes of a watched path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileChanges {
    /// The paths that were created, written, renamed (both names) or removed, or whose mode, owner or
    /// times were changed: absolute, sorted and without duplicates.
    pub paths: Vec<PathBuf>,
    /// Whether other changes may have been missed: the kernel's queue overflowed, a limit was reached,
    /// or the connection was lost for a while. The caller should look for changes itself.
    pub missed: bool,
    /// Directories below the watched path that cannot be read, usually for lack of permission: changes
    /// in them are missed until their mode or owner permits it. Each is reported once. Sorted.
    pub unreadable: Vec<PathBuf>,
}

/// A watched path. Dropping it ends the watch.
pub struct FileWatch {
    path: PathBuf,
    queue: Arc<WatchQueue>,
    /// Ends the watch when it is dropped.
    _source: Box<dyn Send + Sync>,
}

impl FileWatch {
    pub(super) fn new(path: PathBuf, queue: Arc<WatchQueue>, source: Box<dyn Send + Sync>) -> Self {
        FileWatch {
            path,
            queue,
            _source: source,
        }
    }

    /// The watched path: absolute and lexically normalized, with its symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for changes and takes them. Changes are gathered for 200 ms from the first one on, and
    /// between calls. Cancel safe.
    ///
    /// # Errors
    /// When the executor is lost or was closed. The watch has ended then.
    pub async fn next(&mut self) -> Result<FileChanges, FileError> {
        let next = self.queue.next().await;
        next.map_err(|error| FileError::new("watch", &self.path, error))
    }
}

impl fmt::Debug for FileWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watch = &mut f.debug_struct("FileWatch");
        watch.field("path", &self.path).finish_non_exhaustive()
    }
}

/// The unread changes of a watch. Its source adds changes, and the handle takes them.
#[derive(Default)]
pub(crate) struct WatchQueue {
    unread: Mutex<Unread>,
    added: Notify,
}

/// The changes that the handle has not taken yet.
#[derive(Default)]
struct Unread {
    paths: BTreeSet<PathBuf>,
    unreadable: BTreeSet<PathBuf>,
    bytes: usize,
    missed: bool,
    failure: Option<BackendError>,
}

impl WatchQueue {
    /// Adds changes.
    pub(crate) fn add(&self, changes: FileChanges) {
        let mut unread = self.unread.lock();
        let Unread {
            paths,
            unreadable,
            bytes,
            ..
        } = &mut *unread;
        let is_complete =
            extend(paths, changes.paths, bytes) && extend(unreadable, changes.unreadable, bytes);
        unread.missed |= changes.missed || !is_complete;
        drop(unread);
        self.added.notify_one();
    }

    /// Ends the watch with an error, behind the unread changes.
    pub(crate) fn fail(&self, error: BackendError) {
        self.unread.lock().failure.get_or_insert(error);
        self.added.notify_one();
    }

    async fn next(&self) -> Result<FileChanges, BackendError> {
        loop {
            if let Some(next) = self.unread.lock().take() {
                return next;
            }
            self.added.notified().await;
        }
    }
}

/// Adds paths while there is memory for them. Returns whether all were added.
fn extend(to: &mut BTreeSet<PathBuf>, paths: Vec<PathBuf>, bytes: &mut usize) -> bool {
    for path in paths {
        let more = path.as_os_str().len() + PATH_BYTES;
        if *bytes + more > MAX_UNREAD_BYTES {
            return false;
        }
        if to.insert(path) {
            *bytes += more;
        }
    }
    true
}

impl Unread {
    fn take(&mut self) -> Option<Result<FileChanges, BackendError>> {
        if self.paths.is_empty() && self.unreadable.is_empty() && !self.missed {
            return self.failure.clone().map(Err);
        }
        self.bytes = 0;
        Some(Ok(FileChanges {
            paths: std::mem::take(&mut self.paths).into_iter().collect(),
            missed: std::mem::take(&mut self.missed),
            unreadable: std::mem::take(&mut self.unreadable).into_iter().collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use outpost_protocol::FileErrorKind;

    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    fn changes(names: &[&str], missed: bool) -> FileChanges {
        FileChanges {
            paths: paths(names),
            missed,
            ..FileChanges::default()
        }
    }

    #[tokio::test]
    async fn unread_changes_are_merged() {
        let queue = WatchQueue::default();
        queue.add(changes(&["/b", "/a"], false));
        queue.add(changes(&["/a", "/c"], true));
        for unreadable in [&["/y"], &["/x"]] {
            queue.add(FileChanges {
                unreadable: paths(unreadable),
                ..FileChanges::default()
            });
        }
        let mut expected = changes(&["/a", "/b", "/c"], true);
        expected.unreadable = paths(&["/x", "/y"]);
        assert_eq!(queue.next().await.unwrap(), expected);
        queue.add(changes(&["/a"], false));
        assert_eq!(queue.next().await.unwrap(), changes(&["/a"], false));
    }

    #[tokio::test]
    async fn failure_follows_unread_changes() {
        let queue = WatchQueue::default();
        queue.add(changes(&["/a"], false));
        queue.fail(BackendError::new(FileErrorKind::Failed, "first"));
        queue.fail(BackendError::new(FileErrorKind::Failed, "second"));
        assert_eq!(queue.next().await.unwrap().paths, paths(&["/a"]));
        for _ in 0..2 {
            assert_eq!(queue.next().await.unwrap_err().to_string(), "first");
        }
    }

    #[tokio::test]
    async fn changes_beyond_the_memory_are_missed() {
        let queue = WatchQueue::default();
        let long = "x".repeat(4000);
        queue.add(FileChanges {
            paths: (0..2000)
                .map(|number| format!("/{number}{long}").into())
                .collect(),
            ..FileChanges::default()
        });
        let kept = queue.next().await.unwrap();
        assert!(kept.missed);
        assert!((1000..1100).contains(&kept.paths.len()));
        queue.add(changes(&["/a"], false));
        assert_eq!(queue.next().await.unwrap().paths, paths(&["/a"]));
    }
}
