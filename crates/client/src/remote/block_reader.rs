//! Reads a file of the server, across reconnects.

use std::sync::Arc;

use outpost_protocol::{
    FileMetadata, FsGetMetadataParams, FsOpenParams, FsReadBlockParams, Method, PathUri,
    SandboxParams,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::{
    connection::{CallError, Connection},
    file_handle::{FileHandle, Purpose},
    session::SessionGuard,
};
use crate::{
    Error,
    files::{BackendError, Block, BlockReader, FileErrorKind, FileFuture, OpenedFile},
};

/// An open file that survives the loss of a connection.
///
/// A handle belongs to its connection. On the next connection the file is opened again by its path,
/// which may lead to another file by then. The protocol has no identity of a file, so its metadata
/// (creation time, modification time, size) is compared: before it was opened, after it was opened,
/// and after it was opened again. If all three are equal, it is the same file.
pub(super) struct RemoteBlockReader {
    guard: Arc<SessionGuard>,
    path: PathUri,
    sandbox: Option<SandboxParams>,
    /// The metadata before the file was opened.
    before: FileMetadata,
    state: Mutex<State>,
    /// Held while the file is opened again, so that concurrent reads open it once.
    reopening: Semaphore,
}

struct State {
    handle: Arc<FileHandle>,
    /// The metadata after the file was opened.
    after: After,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    NotRequested,
    Requested,
    Known(FileMetadata),
}

impl RemoteBlockReader {
    pub(super) async fn open(
        guard: Arc<SessionGuard>,
        path: PathUri,
        sandbox: Option<SandboxParams>,
    ) -> Result<OpenedFile, BackendError> {
        loop {
            let connection = guard.session.connection().await?;
            let opened = async {
                let before = get_metadata(&connection, &path, sandbox.as_ref()).await?;
                let params = open_params(&path, sandbox.as_ref());
                let handle = FileHandle::open(&guard.session, &connection, params).await?;
                Ok((before, handle))
            };
            let (before, handle) = match opened.await {
                Ok(opened) => opened,
                Err(CallError::Lost(_)) => continue,
                Err(error) => return Err(Error::from(error).into()),
            };
            let state = State {
                handle: Arc::new(handle),
                after: After::NotRequested,
            };
            let file = RemoteBlockReader {
                guard,
                path,
                sandbox,
                before,
                state: Mutex::new(state),
                reopening: Semaphore::new(1),
            };
            return Ok(OpenedFile {
                reader: Arc::new(file),
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
                Err(error) => return Err(Error::from(error).into()),
                Ok(block) => return check_length(block, len),
            }
        }
    }

    /// Requests the metadata along with the first block. It stays unknown if that fails.
    async fn get_metadata_after_open(&self, handle: &FileHandle) {
        {
            let mut state = self.state.lock();
            if state.after != After::NotRequested {
                return;
            }
            state.after = After::Requested;
        }
        let _reset = ResetOnDrop(&self.state);
        let found = get_metadata(&handle.connection, &self.path, self.sandbox.as_ref()).await;
        if let Ok(found) = found {
            self.state.lock().after = After::Known(found);
        }
    }

    /// The current handle, or a new one if its connection is lost.
    async fn handle(&self) -> Result<Arc<FileHandle>, BackendError> {
        if let Some(handle) = self.alive() {
            return Ok(handle);
        }
        let Ok(_permit) = self.reopening.acquire().await else {
            unreachable!("the semaphore is never closed");
        };
        if let Some(handle) = self.alive() {
            return Ok(handle);
        }
        let handle = Arc::new(self.reopen().await?);
        self.state.lock().handle = Arc::clone(&handle);
        Ok(handle)
    }

    fn alive(&self) -> Option<Arc<FileHandle>> {
        let handle = Arc::clone(&self.state.lock().handle);
        Some(handle).filter(|handle| !handle.connection.is_lost())
    }

    async fn reopen(&self) -> Result<FileHandle, BackendError> {
        let session = &self.guard.session;
        let changed = |message| BackendError::new(FileErrorKind::Changed, message);
        loop {
            let connection = session.connection().await?;
            if self.state.lock().after != After::Known(self.before) {
                return Err(changed(
                    "the connection was lost before it was known which file was opened",
                ));
            }
            let opened = async {
                let params = open_params(&self.path, self.sandbox.as_ref());
                let handle = FileHandle::open(session, &connection, params).await?;
                let now = get_metadata(&connection, &self.path, self.sandbox.as_ref()).await?;
                Ok((handle, now))
            };
            match opened.await {
                Ok((handle, now)) if now == self.before => return Ok(handle),
                Ok(_) => {
                    return Err(changed(
                        "the connection was lost, and the file has changed meanwhile",
                    ));
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

/// Allows another request if this one is cancelled.
struct ResetOnDrop<'a>(&'a Mutex<State>);

impl Drop for ResetOnDrop<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if state.after == After::Requested {
            state.after = After::NotRequested;
        }
    }
}

impl BlockReader for RemoteBlockReader {
    fn read_block(self: Arc<Self>, offset: u64, len: u64) -> FileFuture<Block> {
        Box::pin(async move { self.read(offset, len).await })
    }
}

/// Checks that a block has the requested length or is the last one. The next block is requested
/// already, at the offset where this one should end: any other length would lose or repeat bytes.
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

fn open_params(path: &PathUri, sandbox: Option<&SandboxParams>) -> Purpose {
    Purpose::Read(FsOpenParams {
        handle_id: String::new(),
        path: path.clone().into(),
        sandbox: sandbox.cloned(),
    })
}

async fn get_metadata(
    connection: &Connection,
    path: &PathUri,
    sandbox: Option<&SandboxParams>,
) -> Result<FileMetadata, CallError> {
    let params = FsGetMetadataParams {
        path: path.clone().into(),
        follow_symlinks: true,
        sandbox: sandbox.cloned(),
    };
    connection.call(Method::FsGetMetadata, &params).await
}
