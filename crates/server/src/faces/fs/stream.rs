//! `fs/createStream`, `fs/writeBlock`, `fs/commit`.

use std::sync::Arc;

use outpost_protocol::{Empty, FsCommitParams, FsCreateStreamParams, FsWriteBlockParams, RpcError};

use super::{
    Desk,
    handles::{Draft, Handle, Place},
};
use crate::{connection::Reply, convert};

/// Starts to replace a file, under the client's name. The name was reserved when
/// the request came.
pub(crate) async fn create_stream(
    desk: Desk,
    place: Place,
    params: FsCreateStreamParams,
    reply: Reply,
) {
    let id = params.handle_id.clone();
    match try_create(&desk, params).await {
        Ok(handle) => {
            // One that was closed meanwhile leaves no trace.
            let closed = desk.handles().fill(&id, place, handle);
            drop(closed);
            reply.send(Ok(Empty {}));
        }
        Err(refusal) => {
            desk.handles().free(&id, place);
            reply.send::<()>(Err(refusal));
        }
    }
}

async fn try_create(desk: &Desk, params: FsCreateStreamParams) -> Result<Handle, RpcError> {
    let path = convert::path(params.path)?;
    let creating = desk.begin(params.sandbox.as_ref(), move |files| {
        files.create_stream(&path)
    });
    let (writer, departure) = creating.await?;
    Ok(Handle::Write(Arc::new(Draft { writer, departure })))
}

/// Writes a block of what will be in the file.
pub(crate) async fn write_block(desk: Desk, params: FsWriteBlockParams, reply: Reply) {
    let written = match writer(&desk, &params.handle_id) {
        Err(refusal) => Err(refusal),
        Ok(draft) => {
            let write = move |_| draft.writer.write_block(params.offset, &params.chunk.0);
            desk.run(None, write).await
        }
    };
    reply.send(written.map(|()| Empty {}));
}

/// Puts what was written in the place of the file. Whatever comes of it, the
/// name is free.
pub(crate) async fn commit(desk: Desk, params: FsCommitParams, reply: Reply) {
    // Requests about a handle come one after the other, so nobody else has it.
    let writer = desk.handles().take_writer(&params.handle_id);
    let committed = match writer.and_then(Arc::into_inner) {
        None => Err(convert::unknown_write_handle(&params.handle_id)),
        Some(Draft { writer, departure }) => {
            let committed = desk.run(None, move |_| writer.commit()).await;
            departure.complete().await;
            committed
        }
    };
    reply.send(committed.map(|()| Empty {}));
}

fn writer(desk: &Desk, id: &str) -> Result<Arc<Draft>, RpcError> {
    match desk.handles().find(id) {
        Some(Handle::Write(draft)) => Ok(draft),
        Some(Handle::Read(_)) | None => Err(convert::unknown_write_handle(id)),
    }
}
