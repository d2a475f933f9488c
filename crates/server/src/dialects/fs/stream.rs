//! `fs/createStream`, `fs/writeBlock`, `fs/commit`.

use std::sync::Arc;

use outpost_engine::sandbox::WorkerAccess;
use outpost_protocol::{Empty, FsCommitParams, FsCreateStreamParams, FsWriteBlockParams, RpcError};

use super::{
    FileService,
    errors::{native_path, unknown_write_handle},
    handles::{Handle, OpenWriter, ReservationId},
};
use crate::connection::Reply;

/// Starts to replace a file. Its handle id was reserved when the request arrived.
pub(crate) async fn create_stream(
    service: FileService,
    slot: ReservationId,
    params: FsCreateStreamParams,
    reply: Reply,
) {
    let id = params.handle_id.clone();
    match try_create(&service, params).await {
        Ok(handle) => {
            // Discard the new file now if the handle was closed meanwhile.
            let closed = service.handles().fill(&id, slot, handle);
            drop(closed);
            reply.send(Ok(Empty {}));
        }
        Err(error) => {
            service.handles().free(&id, slot);
            reply.send::<()>(Err(error));
        }
    }
}

async fn try_create(
    service: &FileService,
    params: FsCreateStreamParams,
) -> Result<Handle, RpcError> {
    let path = native_path(params.path)?;
    let created = service.execute(
        params.sandbox.as_ref(),
        WorkerAccess::Write,
        move |executor| executor.create_stream(&path),
    );
    let (writer, exit) = created.await?;
    Ok(Handle::Write(Arc::new(OpenWriter { writer, exit })))
}

/// Writes a block of the new content.
pub(crate) async fn write_block(service: FileService, params: FsWriteBlockParams, reply: Reply) {
    let handle = service.handles().get(&params.handle_id);
    let written = match handle {
        Some(Handle::Write(open)) => {
            let write = move || open.writer.write_block(params.offset, &params.chunk.0);
            service.blocking(write).await
        }
        Some(Handle::Read(_)) | None => Err(unknown_write_handle(&params.handle_id)),
    };
    reply.send(written.map(|()| Empty {}));
}

/// Replaces the file with what was written. Frees the handle id, whatever the outcome.
pub(crate) async fn commit(service: FileService, params: FsCommitParams, reply: Reply) {
    // Requests about a handle run one after another, so there is no other reference.
    let writer = service.handles().take_writer(&params.handle_id);
    let committed = match writer.and_then(Arc::into_inner) {
        None => Err(unknown_write_handle(&params.handle_id)),
        Some(OpenWriter { writer, exit }) => {
            let committed = service.blocking(move || writer.commit()).await;
            exit.wait().await;
            committed
        }
    };
    reply.send(committed.map(|()| Empty {}));
}
