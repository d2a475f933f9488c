//! The blocking threads of file operations.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::Settings;

/// Runs file operations on blocking threads and limits their number, for all connections.
///
/// An operation that takes long, perhaps because its file system does not answer, gives its permit to
/// others as soon as one waits. Such operations have a limit of their own.
pub(crate) struct FileThreads {
    shared: Arc<Shared>,
    /// How long an operation may take before it gives its permit to others.
    slow_after: Duration,
}

/// Why an operation has no result.
#[derive(Debug)]
pub(crate) enum FileThreadError {
    /// The system refuses a thread.
    NoThread,
    /// The operation panicked.
    Panicked,
}

/// The permits and the running operations, shared by the clones.
struct Shared {
    permits: Arc<Semaphore>,
    slow_permits: Arc<Semaphore>,
    operations: Mutex<Operations>,
}

/// The running file operations, by number.
#[derive(Default)]
struct Operations {
    /// How many were ever started.
    started: u64,
    running: HashMap<u64, Operation>,
}

/// A running file operation and its permit.
struct Operation {
    since: Instant,
    is_slow: bool,
    /// Released with the operation.
    permit: OwnedSemaphorePermit,
}

/// Removes an operation when its thread is done, even if no task waits for it any more.
struct RemoveOnDrop {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let removed = self.shared.operations.lock().running.remove(&self.number);
        drop(removed);
    }
}

impl FileThreads {
    pub(crate) fn new(settings: &Settings) -> Self {
        FileThreads {
            shared: Arc::new(Shared {
                permits: Arc::new(Semaphore::new(settings.file_threads)),
                slow_permits: Arc::new(Semaphore::new(settings.slow_file_threads)),
                operations: Mutex::default(),
            }),
            slow_after: settings.slow_file_operation,
        }
    }

    /// Runs an operation on a thread. If the future is dropped, the thread continues and keeps its permit.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, FileThreadError> {
        let permit = self.wait_for_permit().await;
        let running = self.insert(permit);
        let spawn = || {
            tokio::task::spawn_blocking(move || {
                let _running = running;
                operation()
            })
        };
        // Panics if the system refuses a thread and there is none; that must cost this request only.
        let Ok(thread) = catch_unwind(AssertUnwindSafe(spawn)) else {
            return Err(FileThreadError::NoThread);
        };
        thread.await.map_err(|_| FileThreadError::Panicked)
    }

    async fn wait_for_permit(&self) -> OwnedSemaphorePermit {
        loop {
            let permit = Arc::clone(&self.shared.permits).acquire_owned();
            match timeout(self.slow_after, permit).await {
                Ok(Ok(permit)) => return permit,
                // The semaphore is never closed.
                Ok(Err(_)) => std::future::pending().await,
                Err(_) => self.move_slow_operations(),
            }
        }
    }

    fn insert(&self, permit: OwnedSemaphorePermit) -> RemoveOnDrop {
        let mut operations = self.shared.operations.lock();
        operations.started += 1;
        let number = operations.started;
        let operation = Operation {
            since: Instant::now(),
            is_slow: false,
            permit,
        };
        operations.running.insert(number, operation);
        RemoveOnDrop {
            shared: Arc::clone(&self.shared),
            number,
        }
    }

    /// Moves operations that take long to the permits for them, as far as these suffice.
    fn move_slow_operations(&self) {
        let mut operations = self.shared.operations.lock();
        let running = operations.running.values_mut();
        let slow = running
            .filter(|operation| !operation.is_slow && operation.since.elapsed() >= self.slow_after);
        let mut moved = 0;
        for operation in slow {
            let Ok(permit) = Arc::clone(&self.shared.slow_permits).try_acquire_owned() else {
                break;
            };
            operation.is_slow = true;
            operation.permit = permit;
            moved += 1;
        }
        drop(operations);
        if moved > 0 {
            tracing::warn!(
                moved,
                "file operations take long; their threads are replaced"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn hung_operations_do_not_stop_others() {
        let threads = Arc::new(FileThreads::new(&Settings {
            file_threads: 4,
            slow_file_threads: 8,
            slow_file_operation: Duration::from_millis(50),
            ..Settings::default()
        }));
        let tasks = tokio_util::task::TaskTracker::new();
        let mut hung = Vec::new();
        for number in 0..8 {
            let (release, released) = mpsc::sync_channel::<()>(1);
            let (begin, begun) = tokio::sync::oneshot::channel();
            let threads = Arc::clone(&threads);
            let task = tasks.spawn(async move {
                let hang = move || {
                    let _ = begin.send(());
                    let _ = released.recv();
                };
                threads.run(hang).await
            });
            begun.await.expect("it gets a thread");
            // A task that is gone frees nothing while its thread hangs.
            if number % 2 == 0 {
                task.abort();
            }
            hung.push(release);
        }
        assert_eq!(threads.run(|| 3).await.expect("no panic"), 3);
        assert_eq!(threads.shared.slow_permits.available_permits(), 0);
        drop(hung);
        let all_free = async {
            while !threads.shared.operations.lock().running.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        let all_free = timeout(Duration::from_secs(10), all_free).await;
        all_free.expect("the threads end");
        assert_eq!(threads.shared.permits.available_permits(), 4);
        assert_eq!(threads.shared.slow_permits.available_permits(), 8);
    }
}
