//! Writes a new file on the server in blocks and replaces the old one on commit.

use std::sync::Arc;

use bytes::Bytes;
use outpost_protocol::{Empty, FsCommitParams, FsCreateStreamParams, Method};

use super::{
    connection::CallError,
    file_handle::{FileHandle, Purpose},
    session::SessionGuard,
};
use crate::{
    Error,
    files::{BackendError, BlockWriter, FileErrorKind, FileFuture},
};

/// The new content of a file. It belongs to one connection and is lost with it.
pub(super) struct RemoteBlockWriter {
    handle: FileHandle,
    /// Keeps the connection open.
    guard: Arc<SessionGuard>,
}

impl RemoteBlockWriter {
    /// Starts to replace a file. Retries if the connection is lost before the response: the server
    /// discards what was not committed.
    pub(super) async fn create(
        guard: Arc<SessionGuard>,
        params: FsCreateStreamParams,
    ) -> Result<Self, BackendError> {
        loop {
            let connection = guard.session.connection().await?;
            let purpose = Purpose::Write(params.clone());
            match FileHandle::open(&guard.session, &connection, purpose).await {
                Ok(handle) => {
                    return Ok(RemoteBlockWriter { handle, guard });
                }
                Err(CallError::Lost(_)) => {}
                Err(error) => return Err(Error::from(error).into()),
            }
        }
    }

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
            let written = connection.write_block(id, offset, &bytes).await;
            match written {
                Ok(()) => Ok(()),
                Err(error) => Err(self.failure(FileErrorKind::Interrupted, error).await),
            }
        })
    }

    fn commit(self: Arc<Self>) -> FileFuture<()> {
        Box::pin(async move {
            let params = FsCommitParams {
                handle_id: self.handle.id.clone(),
            };
            let connection = &self.handle.connection;
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
