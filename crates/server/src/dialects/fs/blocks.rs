//! `fs/open`, `fs/readBlock`, `fs/close`.

use std::sync::Arc;

use outpost_engine::sandbox::WorkerAccess;
use outpost_protocol::{
    Empty, FsCloseParams, FsOpenParams, FsOpenResult, FsReadBlockParams, RpcError, Symlinks,
    base64, encode_read_block,
};

use super::{
    FileService,
    errors::{native_path, unknown_read_handle},
    handles::{Handle, ReservationId},
};
use crate::connection::Reply;

/// The size of a response without the block.
const RESPONSE_BYTES: usize = 512;

/// Opens a file. Its handle id was reserved when the request arrived.
pub(crate) async fn open(
    service: FileService,
    slot: ReservationId,
    params: FsOpenParams,
    reply: Reply,
) {
    let id = params.handle_id.clone();
    match try_open(&service, params).await {
        Ok(handle) => {
            // Drop the file now if the handle was closed meanwhile.
            let closed = service.handles().fill(&id, slot, handle);
            drop(closed);
            reply.send(Ok(FsOpenResult { handle_id: id }));
        }
        Err(error) => {
            service.handles().free(&id, slot);
            reply.send::<()>(Err(error));
        }
    }
}

async fn try_open(service: &FileService, params: FsOpenParams) -> Result<Handle, RpcError> {
    let path = native_path(params.path)?;
    let opened = service.execute(
        params.sandbox.as_ref(),
        WorkerAccess::Read,
        move |executor| executor.open(&path, Symlinks::Follow),
    );
    let (file, _) = opened.await?;
    Ok(Handle::Read(Arc::new(file)))
}

/// Reads a block of an open file.
pub(crate) async fn read_block(service: FileService, params: FsReadBlockParams, reply: Reply) {
    let handle = service.handles().get(&params.handle_id);
    let Some(Handle::Read(file)) = handle else {
        return reply.send::<()>(Err(unknown_read_handle(&params.handle_id)));
    };
    let len = usize::try_from(params.len).unwrap_or(usize::MAX);
    let expected = base64::encoded_len(len.min(1 << 20)) + RESPONSE_BYTES;
    // Blocks must not pile up in front of a client that does not read.
    let Some(reservation) = service.reserve_outbox(expected).await else {
        return;
    };
    let read = service.blocking(move || file.read_block(params.offset, params.len));
    match read.await {
        Err(error) => reply.send::<()>(Err(error)),
        Ok(block) => {
            let mut message = Vec::new();
            encode_read_block(&mut message, reply.id(), &block.bytes, block.eof);
            reply.send_message(message, reservation);
        }
    }
}

/// Closes a handle. Its id is free at once.
pub(crate) fn close(service: &FileService, params: &FsCloseParams) -> Empty {
    let closed = service.handles().close(&params.handle_id);
    if let Some(handle) = closed {
        // Closing a large file takes time.
        drop(tokio::task::spawn_blocking(move || drop(handle)));
    }
    Empty {}
}
