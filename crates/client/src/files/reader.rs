//! A file to be read from.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use outpost_protocol::FsGetMetadataResult;
use tokio::io::{AsyncRead, ReadBuf};

use super::{Block, FileError, Opened, Source, Trouble, under_way::UnderWay};

/// What is read at once, in bytes.
const BLOCK_BYTES: u64 = 256 * 1024;
/// How many blocks are asked for ahead of the one that is read.
const BLOCKS_AHEAD: usize = 8;
/// The most that a place gives at once.
const LARGEST_BLOCK: u64 = 1024 * 1024;

/// Reads an open file, some blocks ahead. The file stays the same even if its
/// path becomes another's; it is closed when this is dropped.
///
/// A file that grows is read to where it ended when its end was seen. If the
/// connection to a server is lost, the file is opened again and reading goes on,
/// but only if it is still the one that was opened and has not changed:
/// otherwise the error is [`FileErrorKind::Changed`](crate::FileErrorKind).
pub struct FileReader {
    source: Arc<dyn Source>,
    path: PathBuf,
    metadata: FsGetMetadataResult,
    under_way: UnderWay<Block>,
    /// Where the next block begins that is asked for.
    next: u64,
    /// What has come and was not read yet,
    current: Bytes,
    /// and where it begins.
    position: u64,
    ended: bool,
    /// What is said to whoever goes on reading after an error.
    failed: Option<Trouble>,
}

impl FileReader {
    pub(super) fn new(path: PathBuf, opened: Opened) -> Self {
        FileReader {
            source: opened.source,
            path,
            metadata: opened.metadata,
            under_way: UnderWay::new(),
            next: 0,
            current: Bytes::new(),
            position: 0,
            ended: false,
            failed: None,
        }
    }

    /// What was known of the file when it was opened.
    #[must_use]
    pub fn metadata(&self) -> &FsGetMetadataResult {
        &self.metadata
    }

    /// Where the next byte is read.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes on reading somewhere else; beyond the end there is nothing.
    pub fn seek_to(&mut self, offset: u64) {
        self.under_way.clear();
        self.current.clear();
        self.next = offset;
        self.position = offset;
        self.ended = false;
    }

    /// The bytes from `offset` on: `len` of them, but at most 1 MiB, or all there
    /// are. Any offset, in any order; where reading goes on doesn't change.
    pub fn read_at(
        &self,
        offset: u64,
        len: u64,
    ) -> impl Future<Output = Result<Bytes, FileError>> + Send + use<> {
        let (source, path) = (Arc::clone(&self.source), self.path.clone());
        async move {
            if len == 0 {
                return Ok(Bytes::new());
            }
            let block = source.block(offset, len.min(LARGEST_BLOCK)).await;
            let block = block.map_err(|trouble| FileError::new("read", &path, trouble))?;
            Ok(block.chunk)
        }
    }

    /// The next bytes, as many as are at hand: at least one, unless the file has
    /// ended. Cancel-safe.
    pub async fn next_bytes(&mut self) -> Result<Bytes, FileError> {
        std::future::poll_fn(|cx| self.poll_current(cx)).await?;
        let bytes = std::mem::take(&mut self.current);
        self.position += bytes.len() as u64;
        Ok(bytes)
    }

    /// Waits until there is something to be read, or the end.
    fn poll_current(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FileError>> {
        while self.current.is_empty() && !self.ended {
            if let Some(trouble) = &self.failed {
                return Poll::Ready(Err(self.error(trouble.clone())));
            }
            self.ask();
            match ready!(self.under_way.poll_oldest(cx)) {
                Some(Ok(block)) => {
                    // Behind a short block there may be more by now, with a hole before it.
                    if block.eof {
                        self.under_way.clear();
                        self.ended = true;
                    }
                    self.current = block.chunk;
                    // What was freed is asked for before anybody looks at this one.
                    self.ask();
                }
                Some(Err(trouble)) => {
                    self.under_way.clear();
                    self.failed = Some(trouble);
                }
                None => self.ended = true,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Asks for blocks as far ahead as there is something to expect.
    fn ask(&mut self) {
        while !self.ended && self.under_way.len() < BLOCKS_AHEAD {
            // Some files have more than they say, so one block is always tried.
            if self.next >= self.metadata.size && !self.under_way.is_empty() {
                return;
            }
            let block = Arc::clone(&self.source).block(self.next, BLOCK_BYTES);
            self.under_way.push(block);
            self.next = self.next.saturating_add(BLOCK_BYTES);
        }
    }

    fn error(&self, trouble: Trouble) -> FileError {
        FileError::new("read", &self.path, trouble)
    }

    /// Its path, as it was opened.
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
