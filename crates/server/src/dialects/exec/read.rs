//! `process/read`: a page of the journal, or a long poll for one.

use std::time::Duration;

use outpost_engine::{Process, Seq};
use outpost_protocol::{ErrorKind, ReadChunk, ReadParams, ReadResult, RpcError, base64};

use crate::connection::{Caller, Reply};

/// Size of a response without its chunks.
const RESPONSE_OVERHEAD_BYTES: usize = 512;
/// Size of a chunk without its output.
const CHUNK_OVERHEAD_BYTES: usize = 64;
/// Output bytes in one response, whatever the client requests. Encoded as base64 it still
/// fits into the largest message.
const MAX_PAGE_BYTES: usize = 45 * 1024 * 1024;

/// Responds at once if there are events after the cursor; otherwise waits in a task of its
/// own, so that the lane is not blocked.
pub(crate) async fn read(caller: Caller, params: ReadParams, reply: Reply) {
    let process = match caller.session.find(&params.process_id) {
        Ok(process) => process,
        Err(error) => {
            let error =
                RpcError::invalid_request(error.to_string()).with_kind(ErrorKind::UnknownProcess);
            return reply.send::<()>(Err(error));
        }
    };
    let after = Seq(params.after_seq.unwrap_or(0));
    let max_bytes = params
        .max_bytes
        .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0));
    if wait.is_zero() || process.has_news_for(after) {
        return respond(&caller, &process, after, max_bytes, reply).await;
    }
    let long_polls = caller.long_polls.clone();
    long_polls.spawn(async move {
        tokio::select! {
            () = process.news_for(after) => {}
            () = tokio::time::sleep(wait) => {}
            () = caller.gone.cancelled() => return,
            () = caller.replaced.cancelled() => {
                let error = RpcError::invalid_request("session has been resumed by another connection")
                    .with_kind(ErrorKind::SessionReplaced);
                return reply.send::<()>(Err(error));
            }
        }
        respond(&caller, &process, after, max_bytes, reply).await;
    });
}

async fn respond(
    caller: &Caller,
    process: &Process,
    after: Seq,
    max_bytes: Option<usize>,
    reply: Reply,
) {
    // Reserve memory first: pages must not pile up for a client that does not read.
    let bytes = process.page_bytes(after, page_limit(process, after, max_bytes));
    let reservation = tokio::select! {
        reservation = caller.outbox.reserve(bytes / 3 * 4 + RESPONSE_OVERHEAD_BYTES) => reservation,
        () = caller.gone.cancelled() => return,
    };
    let page = process.page(after, page_limit(process, after, max_bytes));
    let sizes = page.chunks.iter().map(|chunk| chunk.bytes.len());
    let expected = sizes.fold(RESPONSE_OVERHEAD_BYTES, |sum, bytes| {
        sum + base64::encoded_len(bytes) + CHUNK_OVERHEAD_BYTES
    });
    if !caller.cross_session {
        process.release();
    }
    let chunks = page.chunks.into_iter().map(|chunk| ReadChunk {
        seq: chunk.seq.0,
        stream: chunk.stream,
        chunk: chunk.bytes,
    });
    let result = ReadResult {
        chunks: chunks.collect(),
        next_seq: page.next_seq.0,
        exited: page.exit.is_some(),
        exit_code: page.exit.map(|exit| exit.code),
        closed: page.closed,
        failure: None,
        sandbox_denied: page.exit.is_some_and(|exit| exit.sandbox_denied),
    };
    reply.send_large(result, expected, reservation);
}

/// Returns the byte limit of a page. Without a limit from the client, the response covers
/// the journal to its end, unless that exceeds the maximum.
fn page_limit(process: &Process, after: Seq, max_bytes: Option<usize>) -> Option<usize> {
    match max_bytes {
        Some(bytes) => Some(bytes.min(MAX_PAGE_BYTES)),
        None => (process.page_bytes(after, None) > MAX_PAGE_BYTES).then_some(MAX_PAGE_BYTES),
    }
}
