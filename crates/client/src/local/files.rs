//! The files of this machine.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use outpost_engine::{
    StartError, WorkerExit,
    sandbox::{PrepareError, Unenforceable, WorkerAccess},
};
use outpost_files::{FileExecutor, FilesError, OpenFile, WatchError, Writer};
use outpost_protocol::{
    FileMetadata, FileOp, FileReply, FileRequest, FsGetMetadataParams, SandboxParams,
    SandboxPermissions, Symlinks,
};
use parking_lot::RwLock;

use super::{
    executor::{Inner, start_error},
    watches::LocalWatches,
};
use crate::{
    Error,
    files::{
        BackendError, Block, BlockReader, BlockWriter, FileBackend, FileErrorKind, FileFuture,
        FileTarget, OpenedFile, WatchOptions, WatchQueue,
    },
};

/// Performs file operations on blocking threads, in a sandboxed worker if there is a sandbox.
pub(crate) struct LocalFileBackend {
    files: outpost_files::Files,
    watches: Arc<LocalWatches>,
    /// The executor that starts workers; without one there are no sandboxed operations.
    executor: Option<Arc<Inner>>,
}

impl LocalFileBackend {
    /// A backend without an executor.
    pub(crate) fn here() -> Self {
        LocalFileBackend {
            files: outpost_files::Files::default(),
            watches: Arc::default(),
            executor: None,
        }
    }

    /// The backend of an executor, which it keeps alive.
    pub(super) fn of(executor: Arc<Inner>) -> Self {
        LocalFileBackend {
            files: outpost_files::Files::default(),
            watches: Arc::clone(&executor.watches),
            executor: Some(executor),
        }
    }

    fn check_open(&self) -> Result<(), Error> {
        let executor = self.executor.as_ref();
        executor.map_or(Ok(()), |inner| inner.check_open())
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
        let open = self.check_open();
        Box::pin(async move {
            open?;
            let (executor, exit) = match executor {
                Some(executor) => executor.file_executor(sandbox, access, files).await?,
                None if sandbox.as_ref().is_some_and(is_managed) => {
                    let error = PrepareError::from(Unenforceable::NoHelper);
                    return Err(start_error(StartError::Sandbox(error.into())).into());
                }
                None => (FileExecutor::in_process(files), WorkerExit::default()),
            };
            let result = blocking(move || operation(executor)).await;
            // The caller must find no trace of the worker.
            exit.wait().await;
            result
        })
    }
}

/// Whether the executor is to sandbox the operation.
fn is_managed(sandbox: &SandboxParams) -> bool {
    matches!(sandbox.permissions, SandboxPermissions::Managed { .. })
}

/// Runs work on a blocking thread.
fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackendError> + Send + 'static,
) -> FileFuture<T> {
    Box::pin(async move {
        let result = tokio::task::spawn_blocking(work).await;
        result.unwrap_or_else(|_| Err(Error::disconnected("the runtime ended").into()))
    })
}

impl FileBackend for LocalFileBackend {
    fn base(self: Arc<Self>) -> FileFuture<PathBuf> {
        let base = match &self.executor {
            Some(executor) => Ok(executor.cwd.clone()),
            None => std::env::current_dir().map_err(|error| FilesError::from(error).into()),
        };
        Box::pin(async { base })
    }

    fn perform(self: Arc<Self>, request: FileRequest) -> FileFuture<FileReply> {
        let FileRequest { op, sandbox } = request;
        let access = if op.is_read_only() {
            WorkerAccess::Read
        } else {
            WorkerAccess::Write
        };
        self.execute(sandbox, access, move |executor| Ok(executor.perform(op)?))
    }

    fn read(self: Arc<Self>, file: FileTarget) -> FileFuture<Bytes> {
        self.execute(file.sandbox, WorkerAccess::Read, move |executor| {
            Ok(executor.read(&file.path, file.symlinks)?.into())
        })
    }

    fn write(self: Arc<Self>, file: FileTarget, bytes: Vec<u8>) -> FileFuture<()> {
        self.execute(file.sandbox, WorkerAccess::Write, move |executor| {
            Ok(executor.write(&file.path, &bytes, file.symlinks)?)
        })
    }

    fn open(self: Arc<Self>, file: FileTarget) -> FileFuture<OpenedFile> {
        self.execute(file.sandbox, WorkerAccess::Read, move |executor| {
            let metadata = FileOp::GetMetadata(FsGetMetadataParams {
                path: file.path.clone(),
                symlinks: Symlinks::Follow,
            });
            let metadata = FileMetadata::try_from(executor.perform(metadata)?)
                .map_err(|_| FilesError::NoReply)?;
            let file = executor.open(&file.path, Symlinks::Follow)?;
            Ok(OpenedFile {
                reader: Arc::new(LocalBlockReader(file)),
                metadata,
            })
        })
    }

    fn create(self: Arc<Self>, file: FileTarget) -> FileFuture<Arc<dyn BlockWriter>> {
        self.execute(file.sandbox, WorkerAccess::Write, move |executor| {
            let writer = executor.create_stream(&file.path)?;
            let writer = LocalBlockWriter(RwLock::new(Some(writer)));
            Ok(Arc::new(writer) as Arc<dyn BlockWriter>)
        })
    }

    fn watch(
        self: Arc<Self>,
        file: FileTarget,
        options: WatchOptions,
        queue: Arc<WatchQueue>,
    ) -> FileFuture<Box<dyn Send + Sync>> {
        Box::pin(async move {
            self.check_open()?;
            if file.sandbox.as_ref().is_some_and(is_managed) {
                return Err(WatchError::Sandboxed.into());
            }
            let path = file.path.into_path();
            let watch = self.watches.watch(path, options, queue).await?;
            // The watch keeps the executor open.
            Ok(Box::new((watch, self)) as Box<dyn Send + Sync>)
        })
    }
}

/// Reads blocks of an open file in this process.
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

impl From<FilesError> for BackendError {
    fn from(error: FilesError) -> Self {
        BackendError::rejected(error.kind(), error.errno(), error.to_string())
    }
}
