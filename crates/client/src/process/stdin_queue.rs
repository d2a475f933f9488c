//! Ordered writes to the standard input of a process.

use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use tokio::{
    runtime::Handle as Runtime,
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

use super::ProcessBackend;
use crate::Error;

/// Maximum size of one backend write. Two fit the input queue of a server, so one can be in
/// transit while another is consumed.
const WRITE_BYTES: usize = 512 * 1024;

/// Capacity of the queue. Writers wait while it is full.
const QUEUE_CAPACITY: usize = 16;

/// A queued write.
pub(super) struct Write {
    bytes: Bytes,
    /// Whether to close standard input after the bytes.
    end: bool,
    /// The first error of earlier writes of the same writer.
    first_error: Option<FirstError>,
    /// Receives the result; the receiver may be gone.
    done: oneshot::Sender<Result<(), Error>>,
}

/// The first error of a writer that queues several writes. After it, no later write of the same
/// writer is performed, so that no bytes are skipped.
pub(super) type FirstError = Arc<OnceLock<Error>>;

/// Receives the result of a write. The sender is dropped when the writing task has ended.
pub(super) type WriteResult = oneshot::Receiver<Result<(), Error>>;

impl Write {
    pub(super) fn new(
        bytes: Bytes,
        end: bool,
        first_error: Option<FirstError>,
    ) -> (Self, WriteResult) {
        let (done, result) = oneshot::channel();
        let write = Write {
            bytes,
            end,
            first_error,
            done,
        };
        (write, result)
    }

    fn earlier_error(&self) -> Option<Error> {
        self.first_error.as_ref()?.get().cloned()
    }

    fn finish(self, result: Result<(), Error>) {
        if let (Err(error), Some(first)) = (&result, &self.first_error) {
            let _ = first.set(error.clone());
        }
        let _ = self.done.send(result);
    }
}

/// Performs writes one at a time, in order, in its own task. A caller may stop waiting without
/// delaying others. The task ends when this is dropped.
pub(super) struct StdinQueue {
    backend: Arc<dyn ProcessBackend>,
    runtime: Runtime,
    /// Created by the first write; most processes have none.
    task: OnceLock<(mpsc::Sender<Write>, AbortHandle)>,
}

impl StdinQueue {
    pub(super) fn new(backend: Arc<dyn ProcessBackend>, runtime: Runtime) -> Self {
        StdinQueue {
            backend,
            runtime,
            task: OnceLock::new(),
        }
    }

    pub(super) fn sender(&self) -> mpsc::Sender<Write> {
        let (sender, _) = self.task.get_or_init(|| {
            let (sender, writes) = mpsc::channel(QUEUE_CAPACITY);
            let writing = write_all(Arc::clone(&self.backend), writes);
            (sender, self.runtime.spawn(writing).abort_handle())
        });
        sender.clone()
    }

    /// Writes bytes and waits until they are accepted.
    pub(super) async fn write(&self, bytes: Bytes, end: bool) -> Result<(), Error> {
        let (write, result) = Write::new(bytes, end, None);
        self.sender().send(write).await.map_err(|_| task_ended())?;
        result.await.unwrap_or_else(|_| Err(task_ended()))
    }
}

impl Drop for StdinQueue {
    fn drop(&mut self) {
        if let Some((_, task)) = self.task.get() {
            task.abort();
        }
    }
}

/// The error for a write after the writing task has ended.
pub(super) fn task_ended() -> Error {
    Error::disconnected("the executor was closed")
}

async fn write_all(backend: Arc<dyn ProcessBackend>, mut writes: mpsc::Receiver<Write>) {
    let mut deferred = None;
    loop {
        let first = match deferred.take() {
            Some(write) => write,
            None => match writes.recv().await {
                Some(write) => write,
                None => return,
            },
        };
        if let Some(error) = first.earlier_error() {
            first.finish(Err(error));
            continue;
        }
        let mut batch = vec![first];
        deferred = fill_batch(&mut batch, &mut writes);
        let result = write_batch(backend.as_ref(), &batch).await;
        for write in batch {
            write.finish(result.clone());
        }
    }
}

/// Adds queued writes to the batch while they fit. Returns the first that does not.
fn fill_batch(batch: &mut Vec<Write>, writes: &mut mpsc::Receiver<Write>) -> Option<Write> {
    let mut size = batch[0].bytes.len();
    while !batch[0].end && size < WRITE_BYTES {
        let next = writes.try_recv().ok()?;
        size += next.bytes.len();
        if next.end || size > WRITE_BYTES || next.earlier_error().is_some() {
            return Some(next);
        }
        batch.push(next);
    }
    None
}

async fn write_batch(backend: &dyn ProcessBackend, batch: &[Write]) -> Result<(), Error> {
    let mut bytes = match batch {
        [write] => write.bytes.clone(),
        writes => {
            let mut all = BytesMut::with_capacity(WRITE_BYTES);
            for write in writes {
                all.extend_from_slice(&write.bytes);
            }
            all.freeze()
        }
    };
    let end = batch[0].end;
    loop {
        let next = bytes.split_to(bytes.len().min(WRITE_BYTES));
        backend.write(next, end && bytes.is_empty()).await?;
        if bytes.is_empty() {
            return Ok(());
        }
    }
}
