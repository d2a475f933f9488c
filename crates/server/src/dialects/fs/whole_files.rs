//! `fs/readFile` and `fs/writeFile`.

use std::{io, sync::Arc};

use outpost_engine::sandbox::WorkerAccess;
use outpost_files::{FilesError, OpenFile};
use outpost_protocol::{
    Empty, FsReadFileParams, FsWriteFileParams, ReadFileAnswer, RequestId, RpcError, base64,
};
use outpost_rpc::outbox::Reservation;

use super::FileService;
use crate::connection::Reply;

/// The size of a read: a multiple of the base64 unit, so that padding occurs only at the end.
const STEP_BYTES: usize = 256 * 1024 * ReadFileAnswer::BLOCK_UNIT;
/// The smallest read, for files that do not report their size.
const MIN_STEP_BYTES: usize = 16 * 1024;
/// The size of a response without the file's content.
const RESPONSE_BYTES: usize = 512;

/// Responds with the content of a file. It may have hundreds of megabytes, so it is encoded into the
/// response while it is read.
pub(crate) async fn read_file(service: Arc<FileService>, params: FsReadFileParams, reply: Reply) {
    let response = response(&service, params, reply.id().clone()).await;
    if let Some(((message, reservation), reply)) = reply.accept(response) {
        reply.send_message(message, Some(reservation));
    }
}

async fn response(
    service: &FileService,
    params: FsReadFileParams,
    id: RequestId,
) -> Result<(Vec<u8>, Reservation), RpcError> {
    let path = params.path;
    let symlinks = params.symlinks;
    let open = service.execute(params.sandbox, WorkerAccess::Read, move |executor| {
        let file = executor.open(&path, symlinks)?;
        let len = file.size()?;
        Ok((Arc::new(file), len))
    });
    let ((file, mut len), _) = open.await?;
    let large_bytes = service.connection.server.settings.large_file_bytes;
    loop {
        // A request that waits here holds only a descriptor.
        let permit = service.whole_file_permit(len).await;
        let expected = usize::try_from(len).unwrap_or(usize::MAX);
        let bytes = base64::encoded_len(expected) + RESPONSE_BYTES;
        let reservation = service.connection.reserve(bytes).await?;
        let limit = match permit {
            Some(_) => u64::MAX,
            None => large_bytes,
        };
        let (file, id) = (Arc::clone(&file), id.clone());
        let read = service.blocking(move || read(&file, &id, expected, limit));
        match read.await? {
            Some(message) => return Ok((message, reservation)),
            // The file has grown since its size was read, and needs the permit for large files.
            None => len = large_bytes + 1,
        }
    }
}

/// The response; none if the file has more than `limit` bytes.
fn read(
    file: &OpenFile,
    id: &RequestId,
    expected: usize,
    limit: u64,
) -> Result<Option<Vec<u8>>, FilesError> {
    let out_of_memory = |_| io::Error::from(io::ErrorKind::OutOfMemory);
    let mut response = ReadFileAnswer::new(id, expected).map_err(out_of_memory)?;
    // One byte more than expected, so that the first read reaches the end.
    let wanted = (expected + 1).clamp(MIN_STEP_BYTES, STEP_BYTES);
    let mut step = vec![0; wanted.next_multiple_of(ReadFileAnswer::BLOCK_UNIT)];
    let mut offset = 0;
    loop {
        let filled = file.fill(offset, &mut step)?;
        response.push(&step[..filled]);
        offset += filled as u64;
        file.check_len(offset)?;
        if offset > limit {
            return Ok(None);
        }
        if filled < step.len() {
            return Ok(Some(response.finish()));
        }
    }
}

/// Replaces the content of a file.
pub(crate) async fn write_file(
    service: Arc<FileService>,
    params: FsWriteFileParams,
) -> Result<Empty, RpcError> {
    let bytes = params.data_base64.0.map_err(|error| {
        let message = format!("fs/writeFile requires valid base64 dataBase64: {error}");
        RpcError::invalid_request(message)
    })?;
    let path = params.path;
    let symlinks = params.symlinks;
    let _permit = service.whole_file_permit(bytes.len() as u64).await;
    let write = service.execute(params.sandbox, WorkerAccess::Write, move |executor| {
        executor.write(&path, &bytes, symlinks)
    });
    write.await?;
    Ok(Empty {})
}
