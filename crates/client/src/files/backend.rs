//! The interface between [`Files`](super::Files) and an executor.

use std::{future::Future, path::PathBuf, pin::Pin, sync::Arc};

use bytes::Bytes;
use outpost_protocol::{
    FileMetadata, FileReply, FileRequest, FsReadBlockResult, PathUri, SandboxParams, Symlinks,
};

use super::{BackendError, WatchOptions, WatchQueue};

/// The future of an operation. It borrows nothing, so that a stream can have several in flight.
pub(crate) type FileFuture<T> = Pin<Box<dyn Future<Output = Result<T, BackendError>> + Send>>;

/// A block of a file.
pub(crate) type Block = FsReadBlockResult<Bytes>;

/// A file whose content is read or written.
#[derive(Clone)]
pub(crate) struct FileTarget {
    pub(crate) path: PathUri,
    /// Streams always follow symbolic links.
    pub(crate) symlinks: Symlinks,
    pub(crate) sandbox: Option<SandboxParams>,
}

/// The files of an executor: the local one performs operations itself, the remote one sends them to
/// the server.
pub(crate) trait FileBackend: Send + Sync {
    /// The directory that relative paths are resolved against.
    fn base(self: Arc<Self>) -> FileFuture<PathBuf>;
    /// Performs an operation.
    fn perform(self: Arc<Self>, request: FileRequest) -> FileFuture<FileReply>;
    /// Reads a whole file.
    fn read(self: Arc<Self>, file: FileTarget) -> FileFuture<Bytes>;
    /// Overwrites a whole file.
    fn write(self: Arc<Self>, file: FileTarget, bytes: Vec<u8>) -> FileFuture<()>;
    /// Opens a file for reading.
    fn open(self: Arc<Self>, file: FileTarget) -> FileFuture<OpenedFile>;
    /// Starts to replace a file.
    fn create(self: Arc<Self>, file: FileTarget) -> FileFuture<Arc<dyn BlockWriter>>;
    /// Watches a path, and adds its changes to the queue. Dropping the result ends the watch.
    fn watch(
        self: Arc<Self>,
        file: FileTarget,
        options: WatchOptions,
        queue: Arc<WatchQueue>,
    ) -> FileFuture<Box<dyn Send + Sync>>;
}

/// An open file and its metadata.
pub(crate) struct OpenedFile {
    pub(crate) reader: Arc<dyn BlockReader>,
    pub(crate) metadata: FileMetadata,
}

/// An open file. Dropping the last reference closes it.
pub(crate) trait BlockReader: Send + Sync {
    fn read_block(self: Arc<Self>, offset: u64, len: u64) -> FileFuture<Block>;
}

/// The new content of a file. Dropping the last reference without a commit discards it.
pub(crate) trait BlockWriter: Send + Sync {
    fn write_block(self: Arc<Self>, offset: u64, bytes: Bytes) -> FileFuture<()>;
    fn commit(self: Arc<Self>) -> FileFuture<()>;
}
