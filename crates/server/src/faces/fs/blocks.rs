//! `fs/open`, `fs/readBlock`, `fs/close`.

use std::sync::Arc;

use outpost_protocol::{
    Empty, FsCloseParams, FsOpenParams, FsOpenResult, FsReadBlockParams, RpcError, base64,
    encode_read_block,
};

use super::{
    Desk,
    handles::{Handle, Place},
};
use crate::{connection::Reply, convert};

/// Room for what is in an answer besides the block.
const ANSWER_BYTES: usize = 512;

/// Opens a file under the client's name. The name was reserved when the request
/// came.
pub(crate) async fn open(desk: Desk, place: Place, params: FsOpenParams, reply: Reply) {
    let id = params.handle_id.clone();
    match try_open(&desk, params).await {
        Ok(handle) => {
            // One that was closed meanwhile is let go of at once.
            let closed = desk.handles().fill(&id, place, handle);
            drop(closed);
            reply.send(Ok(FsOpenResult { handle_id: id }));
        }
        Err(refusal) => {
            desk.handles().free(&id, place);
            reply.send::<()>(Err(refusal));
        }
    }
}

async fn try_open(desk: &Desk, params: FsOpenParams) -> Result<Handle, RpcError> {
    let path = convert::path(params.path)?;
    let links = convert::links(true);
    let opening = desk.look(params.sandbox.as_ref(), move |files| {
        files.open(&path, links)
    });
    Ok(Handle::Read(Arc::new(opening.await?)))
}

/// A block of an open file.
pub(crate) async fn read_block(desk: Desk, params: FsReadBlockParams, reply: Reply) {
    let found = desk.handles().find(&params.handle_id);
    let Some(Handle::Read(file)) = found else {
        return reply.send::<()>(Err(convert::unknown_read_handle(&params.handle_id)));
    };
    let len = usize::try_from(params.len).unwrap_or(usize::MAX);
    let expected = base64::encoded_len(len.min(1 << 20)) + ANSWER_BYTES;
    // What is read must not pile up in front of a client that doesn't.
    let Some(room) = desk.room(expected).await else {
        return;
    };
    let reading = desk.look(None, move |_| file.read_block(params.offset, params.len));
    match reading.await {
        Err(refusal) => reply.send::<()>(Err(refusal)),
        Ok(block) => {
            let mut message = Vec::new();
            encode_read_block(&mut message, reply.id(), &block.bytes, block.eof);
            reply.send_message(message, room);
        }
    }
}

/// Lets go of what a name stands for; its place is free at once.
pub(crate) fn close(desk: &Desk, params: &FsCloseParams) -> Empty {
    let closed = desk.handles().close(&params.handle_id);
    if let Some(handle) = closed {
        // To let go of a large file takes its time.
        drop(tokio::task::spawn_blocking(move || drop(handle)));
    }
    Empty {}
}
