//! `fs/writeFile`.

use outpost_engine::sandbox::WorkerAccess;
use outpost_protocol::{Empty, FsWriteFileParams, RpcError, Symlinks};

use super::{FileService, errors::native_path};
use crate::connection::Reply;

/// Replaces the content of a file.
pub(crate) async fn write_file(service: FileService, params: FsWriteFileParams, reply: Reply) {
    let written = write(&service, params).await;
    reply.send(written.map(|()| Empty {}));
}

async fn write(service: &FileService, params: FsWriteFileParams) -> Result<(), RpcError> {
    let bytes = params.data_base64.0.map_err(|error| {
        let message = format!("fs/writeFile requires valid base64 dataBase64: {error}");
        RpcError::invalid_request(message)
    })?;
    let path = native_path(params.path)?;
    let symlinks = Symlinks::following(params.follow_symlinks);
    let is_large = bytes.len() as u64 > service.large_bytes();
    let _permit = if is_large {
        service.large_permit().await
    } else {
        None
    };
    let write = service.execute(
        params.sandbox.as_ref(),
        WorkerAccess::Write,
        move |executor| executor.write(&path, &bytes, symlinks),
    );
    write.await.map(|((), _)| ())
}
