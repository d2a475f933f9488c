//! `fs/open` and `fs/readBlock`; `fs/createStream`, `fs/writeBlock` and `fs/commit`.

use std::sync::Arc;

use outpost_engine::sandbox::WorkerAccess;
use outpost_protocol::{
    Empty, FsCommitParams, FsCreateStreamParams, FsOpenParams, FsReadBlockParams,
    FsWriteBlockParams, RpcError, Symlinks, base64, encode_read_block,
};

use super::{
    FileService,
    handles::{Handle, OpenWriter, unknown_handle},
};
use crate::connection::Reply;

/// The size of a response without the block.
const RESPONSE_BYTES: usize = 512;

/// Opens a file.
pub(crate) async fn open(
    service: Arc<FileService>,
    params: FsOpenParams,
) -> Result<Handle, RpcError> {
    let path = params.path;
    let open = service.execute(params.sandbox, WorkerAccess::Read, move |executor| {
        executor.open(&path, Symlinks::Follow)
    });
    let (file, _) = open.await?;
    Ok(Handle::Read(Arc::new(file)))
}

/// Reads a block of an open file.
pub(crate) async fn read_block(service: Arc<FileService>, params: FsReadBlockParams, reply: Reply) {
    let read = async {
        let handle = service.connection.handles.lock().get(&params.handle_id);
        let Some(Handle::Read(file)) = handle else {
            return Err(unknown_handle("read", &params.handle_id));
        };
        let len = usize::try_from(params.len).unwrap_or(usize::MAX);
        let expected = base64::encoded_len(len.min(1 << 20)) + RESPONSE_BYTES;
        let reservation = service.connection.reserve(expected).await?;
        let read = service.blocking(move || file.read_block(params.offset, params.len));
        Ok((read.await?, reservation))
    };
    if let Some(((block, reservation), reply)) = reply.accept(read.await) {
        let mut message = Vec::new();
        encode_read_block(&mut message, reply.id(), &block.bytes, block.eof);
        reply.send_message(message, Some(reservation));
    }
}

/// Starts to replace a file.
pub(crate) async fn create_stream(
    service: Arc<FileService>,
    params: FsCreateStreamParams,
) -> Result<Handle, RpcError> {
    let path = params.path;
    let create = service.execute(params.sandbox, WorkerAccess::Write, move |executor| {
        executor.create_stream(&path)
    });
    let (writer, exit) = create.await?;
    Ok(Handle::Write(Arc::new(OpenWriter { writer, exit })))
}

/// Writes a block of the new content.
pub(crate) async fn write_block(
    service: Arc<FileService>,
    params: FsWriteBlockParams,
) -> Result<Empty, RpcError> {
    let handle = service.connection.handles.lock().get(&params.handle_id);
    let Some(Handle::Write(open)) = handle else {
        return Err(unknown_handle("write", &params.handle_id));
    };
    let write = move || open.writer.write_block(params.offset, &params.chunk.0);
    service.blocking(write).await?;
    Ok(Empty {})
}

/// Replaces the file with what was written. Frees the handle id, whatever the outcome.
pub(crate) async fn commit(
    service: Arc<FileService>,
    params: FsCommitParams,
) -> Result<Empty, RpcError> {
    // Requests about a handle run one after another, so there is no other reference.
    let writer = service
        .connection
        .handles
        .lock()
        .take_writer(&params.handle_id);
    let Some(OpenWriter { writer, exit }) = writer.and_then(Arc::into_inner) else {
        return Err(unknown_handle("write", &params.handle_id));
    };
    let committed = service.blocking(move || writer.commit()).await;
    exit.wait().await;
    committed.map(|()| Empty {})
}
