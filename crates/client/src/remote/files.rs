//! The files of a server: operations, open handles, and new content of a file.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use outpost_protocol::{
    Base64Text, Empty, FileReply, FileRequest, FsCloseParams, FsCommitParams, FsCreateStreamParams,
    FsReadFileParams, FsReadFileResult, FsWriteFileParams, Method,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{
    block_reader::RemoteBlockReader,
    connection::{CallError, Connection, PendingRequest},
    session::{Session, SessionGuard, require},
    watches,
};
use crate::{
    Error,
    files::{
        BackendError, BlockWriter, FileBackend, FileErrorKind, FileFuture, FileTarget, OpenedFile,
        WatchOptions, WatchQueue,
    },
};

/// Sends file operations to the server.
impl FileBackend for SessionGuard {
    fn base(self: Arc<Self>) -> FileFuture<PathBuf> {
        Box::pin(async move { Ok(self.session.working_directory().await?) })
    }

    fn perform(self: Arc<Self>, request: FileRequest) -> FileFuture<FileReply> {
        Box::pin(async move {
            let method = request.method();
            // Only a request that changes nothing may be repeated after a lost connection.
            let result: Box<RawValue> = if request.op.is_read_only() {
                self.session.call_retrying(method, &request).await?
            } else {
                self.session.call(method, &request).await?
            };
            let reply = request
                .op
                .parse_reply(&result)
                .map_err(|error| Error::from(CallError::InvalidResponse(method.name(), error)))?;
            check_names(&reply)?;
            Ok(reply)
        })
    }

    fn read(self: Arc<Self>, file: FileTarget) -> FileFuture<Bytes> {
        Box::pin(async move {
            let params = FsReadFileParams {
                path: file.path,
                symlinks: file.symlinks,
                sandbox: file.sandbox,
            };
            let call = self.session.call_retrying(Method::FsReadFile, &params);
            let result: FsReadFileResult<Bytes> = call.await?;
            Ok(result.data_base64)
        })
    }

    fn write(self: Arc<Self>, file: FileTarget, bytes: Vec<u8>) -> FileFuture<()> {
        Box::pin(async move {
            let params = FsWriteFileParams {
                path: file.path,
                data_base64: Base64Text::from(bytes),
                symlinks: file.symlinks,
                sandbox: file.sandbox,
            };
            let Empty {} = self.session.call(Method::FsWriteFile, &params).await?;
            Ok(())
        })
    }

    fn open(self: Arc<Self>, file: FileTarget) -> FileFuture<OpenedFile> {
        Box::pin(RemoteBlockReader::open(self, file))
    }

    /// Retries if the connection is lost before the response: the server discards what was not
    /// committed.
    fn create(self: Arc<Self>, file: FileTarget) -> FileFuture<Arc<dyn BlockWriter>> {
        Box::pin(async move {
            let session = &self.session;
            require(session.capabilities().fs_write_stream, "fsWriteStream")?;
            let handle = loop {
                let connection = session.connection().await?;
                let file = file.clone();
                let params = |handle_id| FsCreateStreamParams {
                    handle_id,
                    path: file.path,
                    sandbox: file.sandbox,
                };
                let method = Method::FsCreateStream;
                match FileHandle::open::<Empty, _>(session, &connection, method, params).await {
                    Err(CallError::Lost(_)) => {}
                    handle => break handle.map_err(Error::from)?,
                }
            };
            let guard = self;
            Ok(Arc::new(RemoteBlockWriter { handle, guard }) as Arc<dyn BlockWriter>)
        })
    }

    fn watch(
        self: Arc<Self>,
        file: FileTarget,
        options: WatchOptions,
        queue: Arc<WatchQueue>,
    ) -> FileFuture<Box<dyn Send + Sync>> {
        Box::pin(watches::watch(self, file, options, queue))
    }
}

/// Rejects a listing with names such as `..`. Copying a directory joins the names to a local path,
/// and the server must not choose a path outside of it.
fn check_names(reply: &FileReply) -> Result<(), BackendError> {
    let FileReply::Entries(result) = reply else {
        return Ok(());
    };
    let mut names = result.entries.iter().map(|entry| &*entry.file_name);
    match names.find(|name| !is_file_name(name)) {
        Some(name) => Err(BackendError::new(
            FileErrorKind::Failed,
            format!("the server lists {name:?}, which is no name of a file"),
        )),
        None => Ok(()),
    }
}

fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// An open file on the server, valid on its connection only. Dropping it closes the file.
pub(super) struct FileHandle {
    pub(super) connection: Arc<Connection>,
    pub(super) id: String,
}

impl FileHandle {
    /// Opens a handle with a request that has a result `R`. A task waits for the response, even if
    /// the caller stops waiting: a close request can overtake earlier requests, so it must not be sent
    /// before the response.
    pub(super) async fn open<R: DeserializeOwned, P: Serialize + Send + Sync + 'static>(
        session: &Session,
        connection: &Arc<Connection>,
        method: Method,
        params: impl FnOnce(String) -> P,
    ) -> Result<Self, CallError> {
        let id = session.generate_id("f");
        let params = params(id.clone());
        let (reply, response) = oneshot::channel();
        let connection = Arc::clone(connection);
        session.tasks.spawn(async move {
            let outcome = connection.call::<R>(method, &params).await.map(drop);
            // If the caller has stopped waiting, this drops the handle, which closes the file.
            let _ = reply.send(outcome.map(|()| FileHandle { connection, id }));
        });
        let closed = |_| Err(CallError::Lost("the executor was closed".to_owned()));
        response.await.unwrap_or_else(closed)
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        let handle_id = std::mem::take(&mut self.id);
        let (params, request) = (FsCloseParams { handle_id }, PendingRequest::Ignored);
        // A lost connection has closed all its handles.
        let _ = self.connection.request(Method::FsClose, &params, request);
    }
}

/// The new content of a file. It belongs to one connection and is lost with it.
struct RemoteBlockWriter {
    handle: FileHandle,
    /// Keeps the connection open.
    guard: Arc<SessionGuard>,
}

impl RemoteBlockWriter {
    /// The error for a failed call, of this kind if the connection was lost. Waits until the
    /// connection is back or given up, to tell whether the executor is lost as well.
    async fn failure(&self, kind: FileErrorKind, error: CallError) -> BackendError {
        let CallError::Lost(reason) = error else {
            return Error::from(error).into();
        };
        match self.guard.session.connection().await {
            Ok(_) => BackendError::new(kind, Error::disconnected(reason).to_string()),
            Err(error) => BackendError::lost(kind, error),
        }
    }
}

impl BlockWriter for RemoteBlockWriter {
    fn write_block(self: Arc<Self>, offset: u64, bytes: Bytes) -> FileFuture<()> {
        Box::pin(async move {
            let FileHandle { connection, id } = &self.handle;
            match connection.write_block(id, offset, &bytes).await {
                Ok(()) => Ok(()),
                Err(error) => Err(self.failure(FileErrorKind::Interrupted, error).await),
            }
        })
    }

    fn commit(self: Arc<Self>) -> FileFuture<()> {
        Box::pin(async move {
            let FileHandle { connection, id } = &self.handle;
            let params = FsCommitParams {
                handle_id: id.clone(),
            };
            // Nothing is committed over a connection that is lost already.
            let kind = if connection.is_lost() {
                FileErrorKind::Interrupted
            } else {
                FileErrorKind::Unknown
            };
            match connection.call(Method::FsCommit, &params).await {
                Ok(Empty {}) => Ok(()),
                Err(error) => Err(self.failure(kind, error).await),
            }
        })
    }
}
