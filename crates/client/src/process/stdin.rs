//! Standard input of a process as an [`AsyncWrite`].

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use tokio_util::sync::PollSender;

use super::{
    Process,
    stdin_queue::{FirstError, Write, WriteResult, task_ended},
};

/// Maximum size of one queued write.
const WRITE_BYTES: usize = 64 * 1024;

/// Writes to the standard input of a process.
///
/// Several writes may be in transit at once. [`flush`](tokio::io::AsyncWriteExt::flush) waits
/// until all are accepted, [`shutdown`](tokio::io::AsyncWriteExt::shutdown) closes the input.
/// After the first failed write, nothing more is written.
pub struct Stdin {
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
        let bytes = &buf[..buf.len().min(WRITE_BYTES)];
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
