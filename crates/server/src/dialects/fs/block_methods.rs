//! `fs/open` and `fs/readBlock`; `fs/createStream`, `fs/writeBlock` and `fs/commit`.

use std::sync::Arc;

use outpost_files::OpenFile;
use outpost_protocol::{
    Empty, FsCommitParams, FsCreateStreamParams, FsOpenMode, FsOpenParams, FsReadBlockParams,
    FsWriteBlockParams, RpcError, Symlinks, base64, encode_read_block,
};
use rustix::io::Errno;

use super::{
    FileAccess, FileService, FileUse,
    handles::{Handle, OpenWriter, unknown_handle},
};
use crate::{connection::Reply, convert};

/// The size of a response without the block.
const RESPONSE_BYTES: usize = 512;

/// Opens a file, to be read or to be replaced in place.
pub(crate) async fn open(
    service: Arc<FileService>,
    params: FsOpenParams,
) -> Result<Handle, RpcError> {
    let (path, mode) = (params.path, params.mode);
    let access = match mode {
        FsOpenMode::Read => FileUse::Read,
        FsOpenMode::Replace => FileUse::Write,
    };
    let access = FileAccess::to(&path, params.sandbox, access);
    let open = service.execute(access, move |executor| match mode {
        FsOpenMode::Read => executor.open(&path, Symlinks::Follow),
        FsOpenMode::Replace => executor.replace(&path),
    });
    let (file, _) = open.await?;
    Ok(Handle::File(Arc::new(file)))
}

/// Reads a block of an open file, which is closed if that fails.
pub(crate) async fn read_block(service: Arc<FileService>, params: FsReadBlockParams, reply: Reply) {
    let id = params.handle_id.clone();
    let handle = service.connection.handles.lock().get(&id);
    let found = match handle {
        Some(Handle::File(file)) => Ok(file),
        Some(Handle::Stream(_)) => Err(convert::files_error(&Errno::BADF.into())),
        None => {
            // Released servers check the length before the handle.
            let limits = service.connection.server.settings.files;
            let checked = OpenFile::check_read(params.len, limits);
            let checked = checked.map_err(|error| convert::files_error(&error));
            checked.and_then(|()| Err(unknown_handle(&id)))
        }
    };
    let Some((file, reply)) = reply.accept(found) else {
        return;
    };
    let read = async {
        let len = usize::try_from(params.len).unwrap_or(usize::MAX);
        let expected = base64::encoded_len(len.min(1 << 20)) + RESPONSE_BYTES;
        let reservation = service.connection.reserve(expected).await?;
        let read = service.blocking(move || file.read_block(params.offset, params.len));
        match read.await {
            Ok(block) => Ok((block, reservation)),
            Err(error) => {
                service.close(&id);
                Err(error)
            }
        }
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
    let access = FileAccess::to(&path, params.sandbox, FileUse::Write);
    let create = service.execute(access, move |executor| executor.create_stream(&path));
    let (writer, exit) = create.await?;
    Ok(Handle::Stream(Arc::new(OpenWriter { writer, exit })))
}

/// Writes a block of a stream, or into a file that was opened to be replaced. It stays open if that
/// fails.
pub(crate) async fn write_block(
    service: Arc<FileService>,
    params: FsWriteBlockParams,
) -> Result<Empty, RpcError> {
    let handle = service.connection.handles.lock().get(&params.handle_id);
    let bytes = params.chunk.0;
    match handle {
        Some(Handle::Stream(open)) => {
            let write = move || open.writer.write_block(params.offset, &bytes);
            service.blocking(write).await?;
        }
        Some(Handle::File(file)) => {
            let write = move || file.write_block(params.offset, &bytes);
            service.blocking(write).await?;
        }
        None => {
            // Released servers check the block before the handle.
            let limits = service.connection.server.settings.files;
            OpenFile::check_write(params.offset, bytes.len(), limits)
                .map_err(|error| convert::files_error(&error))?;
            return Err(unknown_handle(&params.handle_id));
        }
    }
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
        return Err(unknown_handle(&params.handle_id));
    };
    let committed = service.blocking(move || writer.commit()).await;
    exit.wait().await;
    committed.map(|()| Empty {})
}
