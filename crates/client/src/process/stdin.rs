//! Standard input of a process: an [`AsyncWrite`], and the queue that all writes go through.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::AsyncWrite,
    runtime::Handle as Runtime,
    sync::{mpsc, oneshot},
    task::AbortHandle,
};
use tokio_util::sync::PollSender;

use super::{Process, ProcessBackend};
use crate::Error;

/// Maximum size of one queued write of a [`Stdin`].
const CHUNK_BYTES: usize = 64 * 1024;

/// Maximum size of one backend write. Two fit the input queue of a server, so one can be in
/// transit while another is consumed.
const WRITE_BYTES: usize = 512 * 1024;

/// Capacity of the queue. Writers wait while it is full.
const QUEUE_CAPACITY: usize = 16;

/// Writes to the standard input of a process.
///
/// Several writes may be in transit at once. [`flush`](tokio::io::AsyncWriteExt::flush) waits
/// until all are accepted, [`shutdown`](tokio::io::AsyncWriteExt::shutdown) closes the input.
/// After the first failed write, nothing more is written.
pub struct Stdin {
    /// Keeps the process alive.
    process: Process,
    queue: PollSender<Write>,
    first_error: FirstError,
    /// Results that are not known yet, oldest first.
    in_flight: VecDeque<WriteResult>,
    closing: bool,
}

impl Stdin {
    pub(super) fn new(process: Process) -> Self {
        Stdin {
            queue: PollSender::new(process.handle.stdin.sender()),
            process,
            first_error: FirstError::default(),
            in_flight: VecDeque::new(),
            closing: false,
        }
    }

    /// Waits until every queued write is accepted.
    fn poll_accepted(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(oldest) = self.in_flight.front_mut() {
            let result = ready!(Pin::new(oldest).poll(cx));
            self.in_flight.pop_front();
            result.unwrap_or_else(|_| Err(task_ended()))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_queue(
        &mut self,
        cx: &mut Context<'_>,
        bytes: impl FnOnce() -> Bytes,
        end: bool,
    ) -> Poll<io::Result<()>> {
        ready!(self.queue.poll_reserve(cx)).map_err(|_| task_ended())?;
        let (write, result) = Write::new(bytes(), end, Some(self.first_error.clone()));
        self.queue.send_item(write).map_err(|_| task_ended())?;
        self.in_flight.push_back(result);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stdin {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // Report errors of earlier writes, without waiting for their results.
        if let Poll::Ready(Err(error)) = this.poll_accepted(cx) {
            return Poll::Ready(Err(error));
        }
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let bytes = &buf[..buf.len().min(CHUNK_BYTES)];
        ready!(this.poll_queue(cx, || Bytes::copy_from_slice(bytes), false))?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_accepted(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.closing {
            ready!(this.poll_queue(cx, Bytes::new, true))?;
            this.closing = true;
        }
        this.poll_accepted(cx)
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

/// A queued write.
struct Write {
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
type FirstError = Arc<OnceLock<Error>>;

/// Receives the result of a write. The sender is dropped when the writing task has ended.
type WriteResult = oneshot::Receiver<Result<(), Error>>;

impl Write {
    fn new(bytes: Bytes, end: bool, first_error: Option<FirstError>) -> (Self, WriteResult) {
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

    fn sender(&self) -> mpsc::Sender<Write> {
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
fn task_ended() -> Error {
    Error::disconnected("the executor was closed")
}

async fn write_all(backend: Arc<dyn ProcessBackend>, mut writes: mpsc::Receiver<Write>) {
    let mut deferred = None;
    loop {
        let next = match deferred.take() {
            None => writes.recv().await,
            deferred => deferred,
        };
        let Some(first) = next else { return };
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

/// Adds queued writes to the batch while they fit. Returns the first write that does not fit.
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
