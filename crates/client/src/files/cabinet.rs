//! What a place has to offer for its files.

use std::{future::Future, path::PathBuf, pin::Pin, sync::Arc};

use bytes::Bytes;
use outpost_protocol::{
    FsCanonicalizeParams, FsCanonicalizeResult, FsCopyParams, FsCreateDirectoryParams,
    FsCreateStreamParams, FsGetMetadataParams, FsGetMetadataResult, FsReadBlockResult,
    FsReadDirectoryParams, FsReadDirectoryResult, FsReadFileParams, FsReadFileResult,
    FsRemoveParams, FsWalkParams, FsWalkResult, FsWriteFileParams, PathUri, SandboxParams,
};

use super::Trouble;

/// What was asked of a place's files, on its way. Nothing of it borrows, so that
/// a stream can have several under way.
pub(crate) type Working<T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send>>;

/// A part of a file.
pub(crate) type Block = FsReadBlockResult<Bytes>;

/// The files of a place, in the words of the wire: what a remote place passes on
/// and a local one does itself.
pub(crate) trait Cabinet: Send + Sync {
    /// Where relative paths begin.
    fn base(&self) -> Working<PathBuf>;
    fn read(&self, params: FsReadFileParams) -> Working<FsReadFileResult<Bytes>>;
    fn write(&self, params: FsWriteFileParams) -> Working<()>;
    fn create_directory(&self, params: FsCreateDirectoryParams) -> Working<()>;
    fn metadata(&self, params: FsGetMetadataParams) -> Working<FsGetMetadataResult>;
    fn canonicalize(&self, params: FsCanonicalizeParams) -> Working<FsCanonicalizeResult>;
    fn read_directory(&self, params: FsReadDirectoryParams) -> Working<FsReadDirectoryResult>;
    fn walk(&self, params: FsWalkParams) -> Working<FsWalkResult>;
    fn remove(&self, params: FsRemoveParams) -> Working<()>;
    fn copy(&self, params: FsCopyParams) -> Working<()>;
    /// Opens a file, and says what it is.
    fn open(&self, path: PathUri, sandbox: Option<SandboxParams>) -> Working<Opened>;
    /// Begins to replace a file. The handle's name is for the place to choose.
    fn create(&self, params: FsCreateStreamParams) -> Working<Arc<dyn Draft>>;
}

/// A file that was opened.
pub(crate) struct Opened {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) metadata: FsGetMetadataResult,
}

/// An open file. Dropping the last reference closes it.
pub(crate) trait Source: Send + Sync {
    fn block(self: Arc<Self>, offset: u64, len: u64) -> Working<Block>;
}

/// What is to take the place of a file. Dropping the last reference without a
/// commit leaves no trace of it.
pub(crate) trait Draft: Send + Sync {
    fn write(self: Arc<Self>, offset: u64, bytes: Bytes) -> Working<()>;
    fn commit(self: Arc<Self>) -> Working<()>;
}
