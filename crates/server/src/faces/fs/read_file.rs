//! `fs/readFile`.

use std::{io, sync::Arc};

use outpost_files::{FilesError, OpenFile};
use outpost_protocol::{FsReadFileParams, ReadFileAnswer, RequestId, RpcError, base64};
use outpost_rpc::outbox::Reservation;

use super::Desk;
use crate::{connection::Reply, convert};

/// How much is read at once: whole groups of base64, so that there is no
/// padding before the end.
const STEP_BYTES: usize = 256 * 1024 * ReadFileAnswer::BLOCK_UNIT;
/// Some files don't say how long they are.
const MIN_STEP_BYTES: usize = 16 * 1024;
/// Room for what is in an answer besides the file.
const ANSWER_BYTES: usize = 512;

/// Answers with all bytes of a file. They are read straight into the answer,
/// which may be hundreds of megabytes long.
pub(crate) async fn read_file(desk: Desk, params: FsReadFileParams, reply: Reply) {
    match answer(&desk, params, reply.id().clone()).await {
        Ok(Some((message, room))) => reply.send_message(message, room),
        // Nobody is there to read it.
        Ok(None) => {}
        Err(refusal) => reply.send::<()>(Err(refusal)),
    }
}

async fn answer(
    desk: &Desk,
    params: FsReadFileParams,
    id: RequestId,
) -> Result<Option<(Vec<u8>, Reservation)>, RpcError> {
    let path = convert::path(params.path)?;
    let links = convert::links(params.follow_symlinks);
    let opened = desk.look(params.sandbox.as_ref(), move |files| {
        let file = files.open(&path, links)?;
        let len = file.len()?;
        Ok((Arc::new(file), len))
    });
    let (file, mut len) = opened.await?;
    loop {
        let is_large = len > desk.large_bytes();
        // One that waits for its turn holds a descriptor and nothing else.
        let _turn = if is_large { desk.large().await } else { None };
        let expected = usize::try_from(len).unwrap_or(usize::MAX);
        let Some(room) = desk
            .room(base64::encoded_len(expected) + ANSWER_BYTES)
            .await
        else {
            return Ok(None);
        };
        let most = if is_large {
            u64::MAX
        } else {
            desk.large_bytes()
        };
        let (file, id) = (Arc::clone(&file), id.clone());
        let read = desk
            .blocking(move || read(&file, &id, expected, most))
            .await?;
        match read.map_err(|error| convert::files_error(&error))? {
            Some(message) => return Ok(Some((message, room))),
            // It has grown since we looked, and has to wait for its turn.
            None => len = desk.large_bytes() + 1,
        }
    }
}

/// The answer, or none if the file has more than `most` bytes.
fn read(
    file: &OpenFile,
    id: &RequestId,
    expected: usize,
    most: u64,
) -> Result<Option<Vec<u8>>, FilesError> {
    let out_of_memory = |_| io::Error::from(io::ErrorKind::OutOfMemory);
    let mut answer = ReadFileAnswer::new(id, expected).map_err(out_of_memory)?;
    // One more byte than is expected, so that the end shows at once.
    let wanted = (expected + 1).clamp(MIN_STEP_BYTES, STEP_BYTES);
    let mut step = vec![0; wanted.next_multiple_of(ReadFileAnswer::BLOCK_UNIT)];
    let mut offset = 0;
    loop {
        let filled = file.fill(offset, &mut step)?;
        answer.push(&step[..filled]);
        offset += filled as u64;
        file.check_len(offset)?;
        if offset > most {
            return Ok(None);
        }
        if filled < step.len() {
            return Ok(Some(answer.finish()));
        }
    }
}
