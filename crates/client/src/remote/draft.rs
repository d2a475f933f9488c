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
    _guard: Arc<Guard>,
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
                    return Ok(RemoteDraft {
                        handle,
                        _guard: guard,
                    });
                }
                Err(CallError::Lost(_)) => {}
                Err(error) => return Err(Error::from(error).into()),
            }
        }
    }
}

impl Draft for RemoteDraft {
    fn write(self: Arc<Self>, offset: u64, bytes: Bytes) -> Working<()> {
        Box::pin(async move {
            let FileHandle { line, id } = &self.handle;
            let written = line.write_block(id, offset, &bytes).await;
            written.map_err(|error| lost_as(FileErrorKind::Interrupted, error))
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
            let committed = line.call(Method::FsCommit, &params).await;
            let Empty {} = committed.map_err(|error| lost_as(kind, error))?;
            Ok(())
        })
    }
}

/// What the loss of the connection means for the file.
fn lost_as(kind: FileErrorKind, error: CallError) -> Trouble {
    match error {
        CallError::Lost(reason) => Trouble::new(kind, Error::disconnected(reason).to_string()),
        error => Error::from(error).into(),
    }
}
