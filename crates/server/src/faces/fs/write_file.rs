//! `fs/writeFile`.

use outpost_protocol::{Empty, FsWriteFileParams, RpcError};

use super::Desk;
use crate::{connection::Reply, convert};

/// Makes the bytes all that is in a file.
pub(crate) async fn write_file(desk: Desk, params: FsWriteFileParams, reply: Reply) {
    let written = write(&desk, params).await;
    reply.send(written.map(|()| Empty {}));
}

async fn write(desk: &Desk, params: FsWriteFileParams) -> Result<(), RpcError> {
    let bytes = params.data_base64.0.map_err(|error| {
        let words = format!("fs/writeFile requires valid base64 dataBase64: {error}");
        RpcError::invalid_request(words)
    })?;
    let path = convert::path(params.path)?;
    let links = convert::links(params.follow_symlinks);
    let is_large = bytes.len() as u64 > desk.large_bytes();
    let _turn = if is_large { desk.large().await } else { None };
    let sandbox = params.sandbox.as_ref();
    desk.run(sandbox, move |files| files.write(&path, &bytes, links))
        .await
}
