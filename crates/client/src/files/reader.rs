//! Reads an open file.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use futures_util::{StreamExt as _, stream::FuturesOrdered};
use outpost_protocol::FileMetadata;
use tokio::io::{AsyncRead, ReadBuf};

use super::{BackendError, Block, BlockReader, FileError, FileFuture, OpenedFile};

/// The size of a block in bytes.
const BLOCK_BYTES: u64 = 256 * 1024;
/// The number of blocks that are requested ahead.
const BLOCKS_AHEAD: usize = 8;
/// The largest block that an executor returns.
const LARGEST_BLOCK: u64 = 1024 * 1024;

/// Reads an open file, requesting some blocks ahead. It stays the same file even if its path is
/// replaced. Dropping the reader closes the file.
///
/// A growing file is read up to the first end that is seen. If the connection to a server is lost,
/// the file is opened again and reading continues if the file has not changed. Otherwise the error is [`FileErrorKind::Changed`](crate::FileErrorKind).
pub struct FileReader {
    file: Arc<dyn BlockReader>,
    path: PathBuf,
    metadata: FileMetadata,
    /// Requests in flight, so that the latency of the connection is paid once and not for every
    /// block. While the oldest request is finished, a poll returns it without polling the others, so
    /// each is polled once before it is added: the first poll sends its request.
    pipeline: FuturesOrdered<FileFuture<Block>>,
    /// The offset of the next block to request.
    next: u64,
    /// Received bytes that are not read yet.
    current: Bytes,
    /// The offset of `current`.
    position: u64,
    ended: bool,
    /// The error that every later read returns.
    failed: Option<BackendError>,
}

impl FileReader {
    pub(super) fn new(path: PathBuf, opened: OpenedFile) -> Self {
        FileReader {
            file: opened.reader,
            path,
            metadata: opened.metadata,
            pipeline: FuturesOrdered::new(),
            next: 0,
            current: Bytes::new(),
            position: 0,
            ended: false,
            failed: None,
        }
    }

    /// The metadata of the file when it was opened.
    #[must_use]
    pub fn metadata(&self) -> &FileMetadata {
        &self.metadata
    }

    /// The offset of the next byte.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Continues at another offset.
    pub fn seek_to(&mut self, offset: u64) {
        self.pipeline = FuturesOrdered::new();
        self.current.clear();
        self.next = offset;
        self.position = offset;
        self.ended = false;
    }

    /// Reads up to `len` bytes, at most 1 MiB, at `offset`. Does not change the position.
    pub fn read_at(
        &self,
        offset: u64,
        len: u64,
    ) -> impl Future<Output = Result<Bytes, FileError>> + Send + use<> {
        let (file, path) = (Arc::clone(&self.file), self.path.clone());
        async move {
            if len == 0 {
                return Ok(Bytes::new());
            }
            let block = file.read_block(offset, len.min(LARGEST_BLOCK)).await;
            let block = block.map_err(|error| FileError::new("read", &path, error))?;
            Ok(block.chunk)
        }
    }

    /// The next bytes that are available; empty at the end of the file. Cancel safe.
    pub async fn next_bytes(&mut self) -> Result<Bytes, FileError> {
        std::future::poll_fn(|cx| self.poll_current(cx)).await?;
        let bytes = std::mem::take(&mut self.current);
        self.position += bytes.len() as u64;
        Ok(bytes)
    }

    /// Waits for bytes or the end of the file.
    fn poll_current(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FileError>> {
        while self.current.is_empty() && !self.ended {
            if let Some(error) = &self.failed {
                return Poll::Ready(Err(self.error(error.clone())));
            }
            self.request_blocks(cx);
            match ready!(self.pipeline.poll_next_unpin(cx)) {
                Some(Ok(block)) => {
                    // Later blocks may have content by now, which would leave a gap.
                    if block.eof {
                        self.pipeline = FuturesOrdered::new();
                        self.ended = true;
                    }
                    self.current = block.chunk;
                    // Request the next block before the current block is processed.
                    self.request_blocks(cx);
                }
                Some(Err(error)) => {
                    self.pipeline = FuturesOrdered::new();
                    self.failed = Some(error);
                }
                None => self.ended = true,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Requests blocks ahead, up to the known size.
    fn request_blocks(&mut self, cx: &mut Context<'_>) {
        while !self.ended && self.pipeline.len() < BLOCKS_AHEAD {
            // Files in /proc report size 0, so one block is always requested.
            if self.next >= self.metadata.size && !self.pipeline.is_empty() {
                return;
            }
            let mut block = Arc::clone(&self.file).read_block(self.next, BLOCK_BYTES);
            let polled = block.as_mut().poll(cx);
            self.pipeline.push_back(match polled {
                Poll::Ready(done) => Box::pin(std::future::ready(done)),
                Poll::Pending => block,
            });
            self.next = self.next.saturating_add(BLOCK_BYTES);
        }
    }

    fn error(&self, error: BackendError) -> FileError {
        FileError::new("read", &self.path, error)
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsyncRead for FileReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_current(cx))?;
        let count = this.current.len().min(buf.remaining());
        buf.put_slice(&this.current[..count]);
        this.current.advance(count);
        this.position += count as u64;
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileReader")
            .field("path", &self.path)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
