//! `process/write`.

use bytes::Bytes;
use outpost_protocol::{RpcError, WriteParams, WriteResult};

use crate::{
    connection::{Caller, Reply},
    convert,
};

/// Queues bytes for stdin. Waits while the queue is full.
pub(crate) async fn write(caller: Caller, params: WriteParams, reply: Reply) {
    if let Err(error) = check(&params) {
        return reply.send::<()>(Err(error));
    }
    let status = caller
        .session
        .write(
            &params.process_id,
            params
                .chunk
                .map(|chunk| Bytes::from(chunk.0))
                .unwrap_or_default(),
            params.write_id,
            params.close_stdin,
        )
        .await;
    reply.send(Ok(WriteResult { status }));
}

fn check(params: &WriteParams) -> Result<(), RpcError> {
    if params.chunk.is_none() && !params.close_stdin {
        return Err(RpcError::invalid_params("chunk is missing"));
    }
    match &params.write_id {
        Some(id) if id.is_empty() => Err(RpcError::invalid_params("writeId must not be empty")),
        Some(id) => convert::check_name("writeId", id),
        None => Ok(()),
    }
}
