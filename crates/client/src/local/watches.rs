//! Watched paths of this machine.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use outpost_files::{Changes, WatchError, WatchKey, WatchLimits, WatchListener, Watcher};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{
    Error,
    files::{BackendError, FileChanges, WatchOptions, WatchQueue},
};

/// The watches of an executor, which share one inotify instance.
#[derive(Default)]
pub(super) struct LocalWatches {
    /// Created with the first watch.
    watcher: Mutex<Option<Arc<Watcher>>>,
    queues: Arc<Queues>,
}

/// The queues of the open watches.
#[derive(Default)]
struct Queues(Mutex<HashMap<WatchKey, Arc<WatchQueue>>>);

/// A watch, which ends when it is dropped.
struct LocalWatch {
    key: WatchKey,
    watcher: Arc<Watcher>,
    queues: Arc<Queues>,
}

impl LocalWatches {
    /// Watches a path, and adds its changes to the queue until the result is dropped.
    pub(super) async fn watch(
        &self,
        path: PathBuf,
        options: WatchOptions,
        queue: Arc<WatchQueue>,
    ) -> Result<Box<dyn Send + Sync>, BackendError> {
        let watcher = self.watcher()?;
        let key = watcher.reserve();
        self.queues.0.lock().insert(key, queue);
        let watch = LocalWatch {
            key,
            watcher,
            queues: Arc::clone(&self.queues),
        };
        let (opened, opening) = oneshot::channel();
        let options = outpost_files::WatchOptions {
            recursive: options.recursive,
        };
        watch.watcher.watch(key, path, options, move |result| {
            // Fails if the caller has stopped waiting.
            let _ = opened.send(result);
        });
        opening.await.unwrap_or(Err(WatchError::Ended))?;
        Ok(Box::new(watch))
    }

    fn watcher(&self) -> Result<Arc<Watcher>, WatchError> {
        let mut watcher = self.watcher.lock();
        if let Some(watcher) = &*watcher {
            return Ok(Arc::clone(watcher));
        }
        let queues = Arc::clone(&self.queues) as Arc<dyn WatchListener>;
        let new = Arc::new(Watcher::new(WatchLimits::default(), queues)?);
        *watcher = Some(Arc::clone(&new));
        Ok(new)
    }

    /// Ends all watches.
    pub(super) fn close(&self, reason: &Error) {
        for queue in std::mem::take(&mut *self.queues.0.lock()).into_values() {
            queue.fail(reason.clone().into());
        }
        let watcher = self.watcher.lock().take();
        drop(watcher);
    }
}

impl WatchListener for Queues {
    fn changed(&self, watch: WatchKey, changes: Changes) {
        let queue = self.0.lock().get(&watch).cloned();
        if let Some(queue) = queue {
            queue.add(FileChanges {
                paths: changes.paths().cloned().collect(),
                missed: changes.missed(),
                unreadable: changes.unreadable().cloned().collect(),
            });
        }
    }

    fn missing_changed(&self, _: u64) {}
}

impl Drop for LocalWatch {
    fn drop(&mut self) {
        self.watcher.unwatch(self.key);
        let queue = self.queues.0.lock().remove(&self.key);
        drop(queue);
    }
}

impl From<WatchError> for BackendError {
    fn from(error: WatchError) -> Self {
        BackendError::rejected(error.kind(), error.errno(), error.to_string())
    }
}
