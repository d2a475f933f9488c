//! The files of a server.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use outpost_protocol::{
    Empty, FileReply, FileRequest, FsCreateStreamParams, FsReadFileParams, FsReadFileResult,
    FsWriteFileParams, Method, PathUri, SandboxParams,
};
use serde_json::value::RawValue;

use super::{
    block_reader::RemoteBlockReader,
    block_writer::RemoteBlockWriter,
    connection::CallError,
    session::{SessionGuard, require},
};
use crate::{
    Error,
    files::{BackendError, BlockWriter, FileBackend, FileErrorKind, FileFuture, OpenedFile},
};

/// Sends file operations to the server.
pub(super) struct RemoteFileBackend {
    /// Keeps the connection open.
    guard: Arc<SessionGuard>,
}

impl RemoteFileBackend {
    pub(super) fn new(guard: Arc<SessionGuard>) -> Self {
        RemoteFileBackend { guard }
    }
}

impl FileBackend for RemoteFileBackend {
    fn base(&self) -> FileFuture<PathBuf> {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move { Ok(guard.session.working_directory().await?) })
    }

    fn perform(&self, request: FileRequest) -> FileFuture<FileReply> {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move {
            let method = request.method();
            // Only a request that changes nothing may be repeated after a lost connection.
            let result: Box<RawValue> = if request.op.is_read_only() {
                guard.session.call_retrying(method, &request).await?
            } else {
                guard.session.call(method, &request).await?
            };
            let reply = request
                .parse_reply(&result)
                .map_err(|error| Error::from(CallError::InvalidResponse(method.name(), error)))?;
            check_names(&reply)?;
            Ok(reply)
        })
    }

    fn read(&self, params: FsReadFileParams) -> FileFuture<Bytes> {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move {
            let result: FsReadFileResult<Bytes> = guard
                .session
                .call_retrying(Method::FsReadFile, &params)
                .await?;
            Ok(result.data_base64)
        })
    }

    fn write(&self, params: FsWriteFileParams) -> FileFuture<()> {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move {
            let Empty {} = guard.session.call(Method::FsWriteFile, &params).await?;
            Ok(())
        })
    }

    fn open(&self, path: PathUri, sandbox: Option<SandboxParams>) -> FileFuture<OpenedFile> {
        let guard = Arc::clone(&self.guard);
        Box::pin(RemoteBlockReader::open(guard, path, sandbox))
    }

    fn create(&self, params: FsCreateStreamParams) -> FileFuture<Arc<dyn BlockWriter>> {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move {
            let can_stream = guard.session.capabilities().fs_write_stream;
            require(can_stream, "fsWriteStream")?;
            let writer = RemoteBlockWriter::create(guard, params).await?;
            Ok(Arc::new(writer) as Arc<dyn BlockWriter>)
        })
    }
}

/// Rejects a listing with names such as `..`. Copying a directory joins the names to a local path,
/// and the server must not choose a path outside of it.
fn check_names(reply: &FileReply) -> Result<(), BackendError> {
    let FileReply::Entries(entries) = reply else {
        return Ok(());
    };
    let mut names = entries.iter().map(|entry| &*entry.file_name);
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
