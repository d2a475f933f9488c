//! A file to be written to.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use super::{Draft, FileError, Trouble, under_way::UnderWay};

/// What is written at once, in bytes.
const BLOCK_BYTES: usize = 256 * 1024;
/// How many blocks may be on their way.
const BLOCKS_UNDER_WAY: usize = 8;

/// Writes what is to take the place of a file, some blocks at a time on their
/// way. Nothing is to be seen of it before [`commit`](Self::commit), which puts
/// all of it there at once; without one it leaves no trace.
///
/// [`flush`](tokio::io::AsyncWriteExt::flush) and
/// [`shutdown`](tokio::io::AsyncWriteExt::shutdown) wait until everything so far
/// is written, and commit nothing. If the connection to a server is lost, what
/// was written is lost too:
/// [`FileErrorKind::Interrupted`](crate::FileErrorKind).
#[must_use = "without a commit the file stays as it was"]
pub struct FileWriter {
    draft: Arc<dyn Draft>,
    path: PathBuf,
    under_way: UnderWay<()>,
    /// What doesn't make a block yet,
    collected: Vec<u8>,
    /// and where that begins in the file.
    offset: u64,
    /// What is said to whoever goes on writing after an error.
    failed: Option<Trouble>,
}

impl FileWriter {
    pub(super) fn new(path: PathBuf, draft: Arc<dyn Draft>) -> Self {
        FileWriter {
            draft,
            path,
            under_way: UnderWay::new(),
            collected: Vec::new(),
            offset: 0,
            failed: None,
        }
    }

    /// Writes bytes, and waits only until most of them are on their way. What
    /// makes a block by itself isn't copied.
    pub async fn put(&mut self, bytes: Bytes) -> Result<(), FileError> {
        if self.collected.is_empty() && bytes.len() == BLOCK_BYTES {
            std::future::poll_fn(|cx| self.poll_at_most(BLOCKS_UNDER_WAY - 1, cx)).await?;
            self.send(bytes);
            return std::future::poll_fn(|cx| self.poll_at_most(BLOCKS_UNDER_WAY, cx)).await;
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let count = std::future::poll_fn(|cx| self.poll_collect(rest, cx)).await?;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Puts what was written in the place of the file, in one step for everybody
    /// who looks.
    pub async fn commit(mut self) -> Result<(), FileError> {
        std::future::poll_fn(|cx| self.poll_written(cx)).await?;
        let committed = Arc::clone(&self.draft).commit().await;
        committed.map_err(|trouble| self.error(trouble))
    }

    /// Its path, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How much was written so far.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.offset + self.collected.len() as u64
    }

    fn error(&self, trouble: Trouble) -> FileError {
        FileError::new("write", &self.path, trouble)
    }

    /// Waits until at most so many blocks are on their way.
    fn poll_at_most(&mut self, blocks: usize, cx: &mut Context<'_>) -> Poll<Result<(), FileError>> {
        loop {
            if let Some(trouble) = &self.failed {
                return Poll::Ready(Err(self.error(trouble.clone())));
            }
            match self.under_way.poll_oldest(cx) {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(Some(Err(trouble))) => {
                    self.under_way.clear();
                    self.failed = Some(trouble);
                }
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending if self.under_way.len() <= blocks => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Sends what was collected, and waits until all of it is written.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FileError>> {
        if !self.collected.is_empty() {
            ready!(self.poll_at_most(BLOCKS_UNDER_WAY - 1, cx))?;
            self.send_collected();
        }
        self.poll_at_most(0, cx)
    }

    /// Takes as much as makes a block, and sends it once it is one.
    fn poll_collect(
        &mut self,
        bytes: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, FileError>> {
        // Also tells of an error of those that are on their way.
        ready!(self.poll_at_most(BLOCKS_UNDER_WAY - 1, cx))?;
        if self.collected.capacity() == 0 {
            self.collected.reserve_exact(BLOCK_BYTES);
        }
        let count = bytes.len().min(BLOCK_BYTES - self.collected.len());
        self.collected.extend_from_slice(&bytes[..count]);
        if self.collected.len() == BLOCK_BYTES {
            self.send_collected();
            // It is on its way from now on, whoever comes next.
            if let Poll::Ready(Err(error)) = self.poll_at_most(BLOCKS_UNDER_WAY, cx) {
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
        self.under_way
            .push(Arc::clone(&self.draft).write(offset, bytes));
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
