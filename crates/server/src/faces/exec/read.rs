//! `process/read`: a page of the log, or a long poll for one.

use std::time::Duration;

use outpost_engine::{Process, Seq};
use outpost_protocol::{ReadChunk, ReadParams, ReadResult, RpcError, base64};

use crate::{
    connection::{Caller, Reply},
    convert,
};

/// Room for what is in an answer besides the output,
const ANSWER_BYTES: usize = 512;
/// and for what is around each piece of it.
const CHUNK_BYTES: usize = 64;
/// The most output in one answer, however much there is and is asked for: with
/// all that comes around it, it fits the largest message there may be.
const PAGE_BYTES: usize = 45 * 1024 * 1024;

/// Answers at once where there is something to say; else the request waits
/// aside, and its lane goes on.
pub(crate) async fn read(caller: Caller, params: ReadParams, reply: Reply) {
    let process = match caller.session.find(&params.process_id) {
        Ok(process) => process,
        Err(error) => {
            let refusal = RpcError::invalid_request(error.to_string());
            return reply.send::<()>(Err(refusal));
        }
    };
    let after = Seq(params.after_seq.unwrap_or(0));
    let max_bytes = params
        .max_bytes
        .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0));
    if wait.is_zero() || process.has_news_for(after) {
        return answer(&caller, &process, after, max_bytes, reply).await;
    }
    let asides = caller.asides.clone();
    asides.spawn(async move {
        tokio::select! {
            () = process.news_for(after) => {}
            () = tokio::time::sleep(wait) => {}
            () = caller.gone.cancelled() => return,
            () = caller.replaced.cancelled() => {
                let refusal = RpcError::invalid_request("session has been resumed by another connection");
                return reply.send::<()>(Err(refusal));
            }
        }
        answer(&caller, &process, after, max_bytes, reply).await;
    });
}

async fn answer(
    caller: &Caller,
    process: &Process,
    after: Seq,
    max_bytes: Option<usize>,
    reply: Reply,
) {
    // What is read must not pile up in front of a client that doesn't.
    let bytes = process.page_bytes(after, budget(process, after, max_bytes));
    let reservation = tokio::select! {
        reservation = caller.outbox.reserve(bytes / 3 * 4 + ANSWER_BYTES) => reservation,
        () = caller.gone.cancelled() => return,
    };
    let page = process.page(after, budget(process, after, max_bytes));
    let sizes = page.chunks.iter().map(|chunk| chunk.bytes.len());
    let expected = sizes.fold(ANSWER_BYTES, |sum, bytes| {
        sum + base64::encoded_len(bytes) + CHUNK_BYTES
    });
    if !caller.visiting {
        process.release();
    }
    let chunks = page.chunks.into_iter().map(|chunk| ReadChunk {
        seq: chunk.seq.0,
        stream: convert::stream_name(chunk.stream),
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

/// How much is answered with. Who names no limit is told the end of the log as
/// its next cursor, unless there is more than fits.
fn budget(process: &Process, after: Seq, max_bytes: Option<usize>) -> Option<usize> {
    match max_bytes {
        Some(bytes) => Some(bytes.min(PAGE_BYTES)),
        None => (process.page_bytes(after, None) > PAGE_BYTES).then_some(PAGE_BYTES),
    }
}
