//! A file of the server that is being replaced.

use std::sync::Arc;

use bytes::Bytes;
use outpost_protocol::{Empty, FsCommitParams, FsCreateStreamParams, Method};

use super::{
    file_handle::{FileHandle, Purpose},
    line::CallError,
    place::Guard,
};
use crate::{
    Error,
    files::{Draft, FileErrorKind, Trouble, Working},
};

/// What was written so far. It belongs to a connection, and is gone with that.
pub(super) struct RemoteDraft {
    handle: FileHandle,
    /// Keeps the connection as long as somebody writes.
    guard: Arc<Guard>,
}

impl RemoteDraft {
    /// Begins to replace a file. If the connection is lost before the answer,
    /// nothing has happened that would stay, so it is asked again.
    pub(super) async fn create(
        guard: Arc<Guard>,
        params: FsCreateStreamParams,
    ) -> Result<Self, Trouble> {
        loop {
            let line = guard.core.line().await?;
            let purpose = Purpose::Write(params.clone());
            match guard.core.file_handle(&line, purpose).await {
                Ok(handle) => {
                    return Ok(RemoteDraft { handle, guard });
                }
                Err(CallError::Lost(_)) => {}
                Err(error) => return Err(Error::from(error).into()),
            }
        }
    }

    /// What went wrong, and what the loss of the connection means for the file.
    /// Whether the place is lost with it is known once the connection is back, or
    /// was given up.
    async fn trouble(&self, kind: FileErrorKind, error: CallError) -> Trouble {
        let CallError::Lost(reason) = error else {
            return Error::from(error).into();
        };
        match self.guard.core.line().await {
            Ok(_) => Trouble::new(kind, Error::disconnected(reason).to_string()),
            Err(place) => Trouble::lost(kind, place),
        }
    }
}

impl Draft for RemoteDraft {
    fn write(self: Arc<Self>, offset: u64, bytes: Bytes) -> Working<()> {
        Box::pin(async move {
            let FileHandle { line, id } = &self.handle;
            let written = line.write_block(id, offset, &bytes).await;
            match written {
                Ok(()) => Ok(()),
                Err(error) => Err(self.trouble(FileErrorKind::Interrupted, error).await),
            }
        })
    }

    fn commit(self: Arc<Self>) -> Working<()> {
        Box::pin(async move {
            let params = FsCommitParams {
                handle_id: self.handle.id.clone(),
            };
            let line = &self.handle.line;
            // One that is lost already hasn't committed anything.
            let kind = match line.is_lost() {
                true => FileErrorKind::Interrupted,
                false => FileErrorKind::Unknown,
            };
            match line.call(Method::FsCommit, &params).await {
                Ok(Empty {}) => Ok(()),
                Err(error) => Err(self.trouble(kind, error).await),
            }
        })
    }
}
