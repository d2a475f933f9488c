//! Replaces a file.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::FuturesOrdered};
use tokio::io::AsyncWrite;

use super::{BackendError, BlockWriter, FileError, FileFuture};

/// The size of a block in bytes.
const BLOCK_BYTES: usize = 256 * 1024;
/// The number of blocks that may be in flight.
const MAX_IN_FLIGHT: usize = 8;

/// Writes the new content of a file, with several blocks in flight. [`commit`](Self::commit) replaces
/// the file atomically. Without a commit the file stays unchanged and the new content is discarded.
///
/// [`flush`](tokio::io::AsyncWriteExt::flush) and
/// [`shutdown`](tokio::io::AsyncWriteExt::shutdown) wait until everything so far is written, and do
/// not commit. If the connection to a server is lost, the new content is lost too:
/// [`FileErrorKind::Interrupted`](crate::FileErrorKind).
#[must_use = "without a commit the file stays as it was"]
pub struct FileWriter {
    file: Arc<dyn BlockWriter>,
    path: PathBuf,
    /// Requests in flight. The first poll of one sends it, and a poll of the queue reaches a new
    /// one only after those that are finished, so the queue is polled until it is pending.
    pipeline: FuturesOrdered<FileFuture<()>>,
    /// Bytes that do not fill a block yet.
    collected: Vec<u8>,
    /// The offset of `collected`.
    offset: u64,
    /// The error that every later write returns.
    failed: Option<BackendError>,
}

impl FileWriter {
    pub(super) fn new(path: PathBuf, file: Arc<dyn BlockWriter>) -> Self {
        FileWriter {
            file,
            path,
            pipeline: FuturesOrdered::new(),
            collected: Vec::new(),
            offset: 0,
            failed: None,
        }
    }

    /// Writes bytes. Waits only while too many blocks are in flight. A chunk of exactly one block is
    /// not copied.
    pub async fn put(&mut self, bytes: Bytes) -> Result<(), FileError> {
        if self.collected.is_empty() && bytes.len() == BLOCK_BYTES {
            std::future::poll_fn(|cx| self.poll_at_most(MAX_IN_FLIGHT - 1, cx)).await?;
            self.send(bytes);
            return std::future::poll_fn(|cx| self.poll_at_most(MAX_IN_FLIGHT, cx)).await;
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let count = std::future::poll_fn(|cx| self.poll_collect(rest, cx)).await?;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Atomically replaces the file with what was written.
    pub async fn commit(mut self) -> Result<(), FileError> {
        std::future::poll_fn(|cx| self.poll_written(cx)).await?;
        let committed = Arc::clone(&self.file).commit().await;
        committed.map_err(|error| self.error(error))
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of bytes written so far.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.offset + self.collected.len() as u64
    }

    fn error(&self, error: BackendError) -> FileError {
        FileError::new("write", &self.path, error)
    }

    /// Waits until at most `blocks` blocks are in flight.
    fn poll_at_most(&mut self, blocks: usize, cx: &mut Context<'_>) -> Poll<Result<(), FileError>> {
        loop {
            if let Some(error) = &self.failed {
                return Poll::Ready(Err(self.error(error.clone())));
            }
            match self.pipeline.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(Some(Err(error))) => {
                    self.pipeline = FuturesOrdered::new();
                    self.failed = Some(error);
                }
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending if self.pipeline.len() <= blocks => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Sends the collected bytes and waits until all blocks are written.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FileError>> {
        if !self.collected.is_empty() {
            ready!(self.poll_at_most(MAX_IN_FLIGHT - 1, cx))?;
            self.send_collected();
        }
        self.poll_at_most(0, cx)
    }

    /// Collects bytes up to the size of a block, and sends the block once it is full.
    fn poll_collect(
        &mut self,
        bytes: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, FileError>> {
        // Reports errors of the blocks in flight too.
        ready!(self.poll_at_most(MAX_IN_FLIGHT - 1, cx))?;
        if self.collected.capacity() == 0 {
            self.collected.reserve_exact(BLOCK_BYTES);
        }
        let count = bytes.len().min(BLOCK_BYTES - self.collected.len());
        self.collected.extend_from_slice(&bytes[..count]);
        if self.collected.len() == BLOCK_BYTES {
            self.send_collected();
            // Poll the new request once, so that it is sent without waiting for the next call.
            if let Poll::Ready(Err(error)) = self.poll_at_most(MAX_IN_FLIGHT, cx) {
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(count))
    }

    fn send_collected(&mut self) {
        let bytes = std::mem::take(&mut self.collected);
        self.send(bytes.into());
    }

    fn send(&mut self, bytes: Bytes) {
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        let written = Arc::clone(&self.file).write_block(offset, bytes);
        self.pipeline.push_back(written);
    }
}

impl AsyncWrite for FileWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.get_mut().poll_collect(buf, cx))?;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(ready!(self.get_mut().poll_written(cx))?))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWriter")
            .field("path", &self.path)
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}
