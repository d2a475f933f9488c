//! Reads a file of the server, across reconnects.

use std::sync::Arc;

use outpost_protocol::{
    FileMetadata, FileOp, FileRequest, FsGetMetadataParams, FsOpenMode, FsOpenParams, FsOpenResult,
    FsReadBlockParams, Method, Symlinks,
};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use super::{
    connection::{CallError, Connection},
    files::FileHandle,
    session::SessionGuard,
};
use crate::{
    Error,
    files::{BackendError, Block, BlockReader, FileErrorKind, FileFuture, FileTarget, OpenedFile},
};

/// An open file that survives the loss of a connection.
///
/// A handle belongs to its connection. On the next connection the file is opened again by its path,
/// which may lead to another file by then. The protocol has no identity of a file, so its metadata
/// (creation time, modification time, size) is compared: before it was opened, after it was opened,
/// and after it was opened again. If all three are equal, it is the same file.
pub(super) struct RemoteBlockReader {
    guard: Arc<SessionGuard>,
    file: FileTarget,
    /// The metadata before the file was opened.
    before: FileMetadata,
    /// The metadata after the file was opened. Locked while it is requested.
    after: AsyncMutex<Option<FileMetadata>>,
    /// The open file, or the error since it is known to have changed.
    handle: Mutex<Result<Arc<FileHandle>, BackendError>>,
    /// Locked while the file is opened again, so that concurrent reads open it once. The error of
    /// the last attempt, which the reads that waited for it return too.
    reopening: AsyncMutex<Option<BackendError>>,
}

impl RemoteBlockReader {
    pub(super) async fn open(
        guard: Arc<SessionGuard>,
        file: FileTarget,
    ) -> Result<OpenedFile, BackendError> {
        loop {
            let connection = guard.session.connection().await?;
            let opened = async {
                let before = get_metadata(&connection, &file).await?;
                Ok((before, open_handle(&guard, &connection, &file).await?))
            };
            let (before, handle) = match opened.await {
                Err(CallError::Lost(_)) => continue,
                opened => opened.map_err(Error::from)?,
            };
            let reader = RemoteBlockReader {
                guard,
                file,
                before,
                after: AsyncMutex::new(None),
                handle: Mutex::new(Ok(Arc::new(handle))),
                reopening: AsyncMutex::new(None),
            };
            return Ok(OpenedFile {
                reader: Arc::new(reader),
                metadata: before,
            });
        }
    }

    /// Reads a block on the current connection.
    async fn read(&self, offset: u64, len: u64) -> Result<Block, BackendError> {
        loop {
            let handle = self.handle().await?;
            let params = FsReadBlockParams {
                handle_id: handle.id.clone(),
                offset,
                len,
            };
            let (block, ()) = tokio::join!(
                handle.connection.call(Method::FsReadBlock, &params),
                self.get_metadata_after_open(&handle)
            );
            match block {
                Err(CallError::Lost(_)) => {}
                block => return check_length(block.map_err(Error::from)?, len),
            }
        }
    }

    /// Requests the metadata along with the first block. It stays unknown if that fails.
    async fn get_metadata_after_open(&self, handle: &FileHandle) {
        if let Ok(mut after) = self.after.try_lock()
            && after.is_none()
        {
            *after = get_metadata(&handle.connection, &self.file).await.ok();
        }
    }

    /// The current handle, or a new one if its connection is lost.
    async fn handle(&self) -> Result<Arc<FileHandle>, BackendError> {
        if let Some(known) = self.known_handle() {
            return known;
        }
        let mut attempt = match self.reopening.try_lock() {
            Ok(attempt) => attempt,
            Err(_) => {
                let attempt = self.reopening.lock().await;
                if let Some(error) = &*attempt {
                    return Err(error.clone());
                }
                attempt
            }
        };
        if let Some(known) = self.known_handle() {
            return known;
        }
        *attempt = None;
        let reopened = self.reopen().await.map(Arc::new);
        match &reopened {
            Ok(handle) => *self.handle.lock() = Ok(Arc::clone(handle)),
            Err(error) => *attempt = Some(error.clone()),
        }
        reopened
    }

    /// The current handle, or the error if the file has changed. None if the handle's connection
    /// is lost.
    fn known_handle(&self) -> Option<Result<Arc<FileHandle>, BackendError>> {
        let handle = self.handle.lock();
        let is_lost = handle.as_ref().is_ok_and(|open| open.connection.is_lost());
        (!is_lost).then(|| handle.clone())
    }

    /// Opens the file again. Stores an error only if another file is found: other errors may be
    /// temporary, so the next read tries again.
    async fn reopen(&self) -> Result<FileHandle, BackendError> {
        let changed = |message| BackendError::new(FileErrorKind::Changed, message);
        loop {
            let connection = self.guard.session.connection().await?;
            let after = self.after.try_lock().ok().and_then(|after| *after);
            if after != Some(self.before) {
                return Err(changed(
                    "the connection was lost before it was known which file was opened",
                ));
            }
            let opened = async {
                let handle = open_handle(&self.guard, &connection, &self.file).await?;
                Ok((handle, get_metadata(&connection, &self.file).await?))
            };
            match opened.await {
                Ok((handle, now)) if now == self.before => return Ok(handle),
                Ok(_) => {
                    let error =
                        changed("the connection was lost, and the file has changed meanwhile");
                    *self.handle.lock() = Err(error.clone());
                    return Err(error);
                }
                Err(CallError::Lost(_)) => {}
                Err(error) => {
                    let error = BackendError::from(Error::from(error));
                    return Err(error.while_reopening());
                }
            }
        }
    }
}

impl BlockReader for RemoteBlockReader {
    fn read_block(self: Arc<Self>, offset: u64, len: u64) -> FileFuture<Block> {
        Box::pin(async move { self.read(offset, len).await })
    }
}

/// Checks that a block has the requested length or is the last one. The next block is requested
/// already, at the offset where this block should end: any other length would lose or repeat bytes.
fn check_length(block: Block, len: u64) -> Result<Block, BackendError> {
    let has = block.chunk.len() as u64;
    if has == len || (has < len && block.eof) {
        return Ok(block);
    }
    Err(BackendError::new(
        FileErrorKind::Failed,
        format!("the server answers with {has} bytes where {len} were asked for"),
    ))
}

async fn open_handle(
    guard: &SessionGuard,
    connection: &Arc<Connection>,
    file: &FileTarget,
) -> Result<FileHandle, CallError> {
    let file = file.clone();
    let params = |handle_id| FsOpenParams {
        handle_id,
        path: file.path,
        mode: FsOpenMode::Read,
        sandbox: file.sandbox,
    };
    let method = Method::FsOpen;
    FileHandle::open::<FsOpenResult, _>(&guard.session, connection, method, params).await
}

async fn get_metadata(
    connection: &Connection,
    file: &FileTarget,
) -> Result<FileMetadata, CallError> {
    let request = FileRequest {
        op: FileOp::GetMetadata(FsGetMetadataParams {
            path: file.path.clone(),
            symlinks: Symlinks::Follow,
        }),
        sandbox: file.sandbox.clone(),
    };
    connection.call(request.method(), &request).await
}
