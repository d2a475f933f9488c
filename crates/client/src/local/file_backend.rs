//! The files of this machine.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use outpost_engine::{WorkerExit, sandbox::WorkerAccess};
use outpost_files::{FileExecutor, FilesError, OpenFile, Writer};
use outpost_protocol::{
    FileMetadata, FileOp, FileReply, FileRequest, FsCreateStreamParams, FsPath, FsReadFileParams,
    FsWriteFileParams, PathUri, SandboxParams, Symlinks,
};
use parking_lot::RwLock;

use super::{errors, executor::Inner};
use crate::{
    Error,
    files::{
        BackendError, Block, BlockReader, BlockWriter, FileBackend, FileErrorKind, FileFuture,
        OpenedFile,
    },
};

/// Performs file operations on blocking threads, in a sandboxed worker if there is a sandbox.
pub(crate) struct LocalFileBackend {
    files: outpost_files::Files,
    /// The executor that starts workers; without one there are no sandboxed operations.
    executor: Option<Arc<Inner>>,
}

impl LocalFileBackend {
    /// A backend without an executor.
    pub(crate) fn here() -> Self {
        LocalFileBackend {
            files: outpost_files::Files::default(),
            executor: None,
        }
    }

    /// The backend of an executor, which it keeps alive.
    pub(super) fn of(executor: Arc<Inner>) -> Self {
        LocalFileBackend {
            executor: Some(executor),
            ..LocalFileBackend::here()
        }
    }

    /// Runs an operation on a blocking thread. Fails at once if the executor is closed.
    fn execute<T: Send + 'static>(
        &self,
        sandbox: Option<SandboxParams>,
        access: WorkerAccess,
        operation: impl FnOnce(FileExecutor) -> Result<T, BackendError> + Send + 'static,
    ) -> FileFuture<T> {
        let files = self.files;
        let executor = self.executor.clone();
        let open = executor
            .as_ref()
            .map_or(Ok(()), |executor| executor.check_open());
        Box::pin(async move {
            open?;
            let (executor, exit) = match executor {
                Some(executor) => {
                    executor
                        .file_executor(sandbox.as_ref(), access, files)
                        .await?
                }
                None => {
                    sandbox.as_ref().map_or(Ok(()), errors::check_sandbox)?;
                    (FileExecutor::in_process(files), WorkerExit::default())
                }
            };
            let result = blocking(move || operation(executor)).await;
            // The caller must find no trace of the worker.
            exit.wait().await;
            result
        })
    }
}

/// Runs work on a blocking thread.
fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackendError> + Send + 'static,
) -> FileFuture<T> {
    Box::pin(async move {
        let result = tokio::task::spawn_blocking(work).await;
        result.unwrap_or_else(|_| {
            let error = Error::disconnected("the runtime ended");
            Err(BackendError::unavailable(error))
        })
    })
}

impl FileBackend for LocalFileBackend {
    fn base(&self) -> FileFuture<PathBuf> {
        let base = match &self.executor {
            Some(executor) => Ok(executor.cwd().to_owned()),
            None => std::env::current_dir().map_err(|error| FilesError::from(error).into()),
        };
        Box::pin(async { base })
    }

    fn perform(&self, request: FileRequest) -> FileFuture<FileReply> {
        let FileRequest { op, sandbox } = request;
        let access = if op.is_read_only() {
            WorkerAccess::Read
        } else {
            WorkerAccess::Write
        };
        self.execute(sandbox, access, move |executor| Ok(executor.perform(op)?))
    }

    fn read(&self, params: FsReadFileParams) -> FileFuture<Bytes> {
        self.execute(params.sandbox, WorkerAccess::Read, move |executor| {
            let symlinks = Symlinks::following(params.follow_symlinks);
            let bytes = executor.read(&native_path(params.path)?, symlinks)?;
            Ok(bytes.into())
        })
    }

    fn write(&self, params: FsWriteFileParams) -> FileFuture<()> {
        self.execute(params.sandbox, WorkerAccess::Write, move |executor| {
            let bytes = params
                .data_base64
                .0
                .map_err(|error| BackendError::new(FileErrorKind::Invalid, error.to_string()))?;
            let symlinks = Symlinks::following(params.follow_symlinks);
            Ok(executor.write(&native_path(params.path)?, &bytes, symlinks)?)
        })
    }

    fn open(&self, path: PathUri, sandbox: Option<SandboxParams>) -> FileFuture<OpenedFile> {
        self.execute(sandbox, WorkerAccess::Read, move |executor| {
            let path = path.into_path();
            let metadata = FileOp::GetMetadata {
                path: path.clone(),
                symlinks: Symlinks::Follow,
            };
            let metadata = FileMetadata::try_from(executor.perform(metadata)?)
                .map_err(|_| FilesError::NoReply)?;
            let file = executor.open(&path, Symlinks::Follow)?;
            Ok(OpenedFile {
                reader: Arc::new(LocalBlockReader(file)),
                metadata,
            })
        })
    }

    fn create(&self, params: FsCreateStreamParams) -> FileFuture<Arc<dyn BlockWriter>> {
        self.execute(params.sandbox, WorkerAccess::Write, move |executor| {
            let writer = executor.create_stream(&native_path(params.path)?)?;
            let writer = LocalBlockWriter(RwLock::new(Some(writer)));
            Ok(Arc::new(writer) as Arc<dyn BlockWriter>)
        })
    }
}

struct LocalBlockReader(OpenFile);

impl BlockReader for LocalBlockReader {
    fn read_block(self: Arc<Self>, offset: u64, len: u64) -> FileFuture<Block> {
        blocking(move || {
            let block = self.0.read_block(offset, len)?;
            Ok(Block {
                chunk: block.bytes.into(),
                eof: block.eof,
            })
        })
    }
}

/// Blocks are written concurrently; the commit is exclusive.
struct LocalBlockWriter(RwLock<Option<Writer>>);

impl BlockWriter for LocalBlockWriter {
    fn write_block(self: Arc<Self>, offset: u64, bytes: Bytes) -> FileFuture<()> {
        blocking(move || match &*self.0.read() {
            Some(writer) => Ok(writer.write_block(offset, &bytes)?),
            None => Err(already_committed()),
        })
    }

    fn commit(self: Arc<Self>) -> FileFuture<()> {
        blocking(move || {
            let writer = self.0.write().take();
            Ok(writer.ok_or_else(already_committed)?.commit()?)
        })
    }
}

fn already_committed() -> BackendError {
    BackendError::new(FileErrorKind::Invalid, "the file was replaced already")
}

fn native_path(path: FsPath) -> Result<PathBuf, BackendError> {
    path.into_path()
        .map_err(|error| BackendError::new(FileErrorKind::Invalid, error.to_string()))
}

impl From<FilesError> for BackendError {
    fn from(error: FilesError) -> Self {
        BackendError::rejected(error.kind(), error.errno(), error.to_string())
    }
}
