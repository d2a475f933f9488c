//! `fs/readFile` and `fs/writeFile`.

use std::{io, sync::Arc};

use outpost_files::{FilesError, OpenFile};
use outpost_protocol::{
    Empty, FsReadFileParams, FsWriteFileParams, ReadFileAnswer, RequestId, RpcError, base64,
};
use outpost_rpc::outbox::{MessageFragment, Reservation};
use tokio::sync::SemaphorePermit;

use super::{FileAccess, FileService, FileUse};
use crate::connection::Reply;

/// The largest file that is encoded as a whole. Larger files are sent while they are read.
const WHOLE_BYTES: usize = 1024 * 1024 * ReadFileAnswer::BLOCK_UNIT;
/// The size of a block: a multiple of the base64 unit, so that padding occurs only at the end.
const BLOCK_BYTES: usize = 32 * 1024 * ReadFileAnswer::BLOCK_UNIT;
/// The size of a block if there is little memory.
const SMALL_BLOCK_BYTES: usize = 4 * 1024 * ReadFileAnswer::BLOCK_UNIT;
/// Blocks in memory: one is read, one waits, and one is written.
const BLOCKS: usize = 3;
/// The smallest read, for files that do not report their size.
const MIN_READ_BYTES: usize = 16 * 1024;
/// The size of a response without the file's content.
const RESPONSE_BYTES: usize = 512;

/// Responds with the content of a file. It may have hundreds of megabytes, so a large one is read in
/// blocks while the response is written. If that fails, the connection is closed.
pub(crate) async fn read_file(service: Arc<FileService>, params: FsReadFileParams, reply: Reply) {
    let begun = begin(&service, params, reply.id().clone()).await;
    let Some((begun, reply)) = reply.accept(begun) else {
        return;
    };
    let BegunResponse {
        file,
        mut answer,
        mut offset,
        block_bytes,
        reservation,
        is_complete,
        _permit,
    } = begun;
    if is_complete {
        return reply.send_message(answer.finish(), Some(reservation));
    }
    let limit = service.connection.server.settings.files.file_bytes;
    let blocks = reply.send_blocks(answer.take_block(), reservation);
    loop {
        let file = Arc::clone(&file);
        // A file that grows meanwhile is cut at the limit.
        let len = usize::try_from(limit - offset).unwrap_or(usize::MAX);
        let len = len.min(block_bytes);
        let read = service.blocking(move || {
            let read = push_block(&file, &mut answer, offset, len)?;
            Ok((answer, read))
        });
        let read = match read.await {
            Ok((returned, read)) => {
                answer = returned;
                read
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the rest of a file; closing the connection");
                return;
            }
        };
        offset += read as u64;
        let last = read < block_bytes || offset >= limit;
        let bytes = match last {
            true => std::mem::take(&mut answer).finish(),
            false => answer.take_block(),
        };
        // Fails if the connection has ended.
        if blocks.send(MessageFragment { bytes, last }).await.is_err() || last {
            return;
        }
    }
}

/// The beginning of a response.
struct BegunResponse<'a> {
    file: Arc<OpenFile>,
    answer: ReadFileAnswer,
    /// The number of bytes that were read.
    offset: u64,
    /// The size of further blocks.
    block_bytes: usize,
    reservation: Reservation,
    /// Whether the end of the file was read.
    is_complete: bool,
    /// A connection sends one large file at a time.
    _permit: Option<SemaphorePermit<'a>>,
}

/// Opens a file and reads the beginning, or all of it if it is small.
async fn begin(
    service: &FileService,
    params: FsReadFileParams,
    id: RequestId,
) -> Result<BegunResponse<'_>, RpcError> {
    let path = params.path;
    let symlinks = params.symlinks;
    let access = FileAccess::to(&path, params.sandbox, FileUse::Read);
    let open = service.execute(access, move |executor| {
        let file = executor.open(&path, symlinks)?;
        let len = file.size()?;
        Ok((Arc::new(file), len))
    });
    let ((file, len), _) = open.await?;
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if len <= WHOLE_BYTES
        && let Some(begun) = read_beginning(service, &file, len, id.clone()).await?
    {
        return Ok(begun);
    }
    // Also a file that has more than it reports, as in /proc. A request that waits here holds only a
    // descriptor.
    read_ahead(service, &file).await?;
    let permit = service.large.acquire().await.ok();
    let begun = read_beginning(service, &file, usize::MAX, id).await?;
    let begun = begun.ok_or_else(|| RpcError::internal("file operation failed"))?;
    Ok(BegunResponse {
        _permit: permit,
        ..begun
    })
}

/// Reads a file once before its response is begun, so that a file system that does not answer holds up
/// this request only: the connection sends nothing else until the response is complete. The response
/// then comes from the page cache.
async fn read_ahead(service: &FileService, file: &Arc<OpenFile>) -> Result<(), RpcError> {
    let limit = service.connection.server.settings.files.file_bytes;
    let gone = service.connection.gone.clone();
    let file = Arc::clone(file);
    let read = service.blocking(move || {
        let mut block = vec![0; BLOCK_BYTES];
        let mut offset = 0;
        while offset < limit && !gone.is_cancelled() {
            let read = file.fill(offset, &mut block)?;
            offset += read as u64;
            if read < block.len() {
                break;
            }
        }
        Ok(())
    });
    read.await
}

/// Reads the beginning of a file, or all of it if `len` is small. Returns `None` if it has more than
/// that.
async fn read_beginning<'a>(
    service: &FileService,
    file: &Arc<OpenFile>,
    len: usize,
    id: RequestId,
) -> Result<Option<BegunResponse<'a>>, RpcError> {
    let is_large = len > WHOLE_BYTES;
    let memory = |bytes| base64::encoded_len(bytes) + RESPONSE_BYTES;
    let wanted = match is_large {
        true => memory(BLOCK_BYTES) * BLOCKS,
        false => memory(len),
    };
    let least = wanted.min(memory(SMALL_BLOCK_BYTES) * BLOCKS);
    let (reservation, is_whole) = service.connection.reserve_or(wanted, least).await?;
    let block_bytes = match is_whole {
        true => BLOCK_BYTES,
        false => SMALL_BLOCK_BYTES,
    };
    let first = match is_large || !is_whole {
        true => block_bytes,
        // One byte more than expected, so that the first read reaches the end.
        false => (len + 1).clamp(MIN_READ_BYTES, WHOLE_BYTES),
    };
    let first = first.next_multiple_of(ReadFileAnswer::BLOCK_UNIT);
    let reading = Arc::clone(file);
    let read = service.blocking(move || {
        let out_of_memory = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let mut answer = ReadFileAnswer::new(&id, first.min(len)).map_err(out_of_memory)?;
        let read = push_block(&reading, &mut answer, 0, first)?;
        Ok((answer, read))
    });
    let (answer, read) = read.await?;
    let is_complete = read < first;
    // Without the memory of its blocks, it cannot be sent in blocks.
    if !is_complete && !is_large && is_whole {
        return Ok(None);
    }
    Ok(Some(BegunResponse {
        file: Arc::clone(file),
        answer,
        offset: read as u64,
        block_bytes,
        reservation,
        is_complete,
        _permit: None,
    }))
}

/// Encodes up to `len` bytes at `offset`. Returns the number of bytes.
fn push_block(
    file: &OpenFile,
    answer: &mut ReadFileAnswer,
    offset: u64,
    len: usize,
) -> Result<usize, FilesError> {
    // Beside the answer itself, only this is in memory.
    let mut block = vec![0; len.min(BLOCK_BYTES)];
    let mut total = 0;
    while total < len {
        let wanted = block.len().min(len - total);
        let read = file.fill(offset + total as u64, &mut block[..wanted])?;
        answer.push(&block[..read]);
        total += read;
        if read < wanted {
            break;
        }
    }
    Ok(total)
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
    let access = FileAccess::to(&path, params.sandbox, FileUse::Write);
    let write = service.execute(access, move |executor| {
        executor.write(&path, &bytes, symlinks)
    });
    write.await?;
    Ok(Empty {})
}
