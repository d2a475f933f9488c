//! The exec dialect: `process/start` and its siblings. Its processes belong to the session.

use std::time::Duration;

use outpost_engine::{Event, Process, Seq, Session, Start, Terminated};
use outpost_protocol::{
    Empty, ErrorKind, NetworkDecision, NetworkParams, NetworkRecord, NetworkResult, OutputEncoder,
    PROCESS_CLOSED, PROCESS_EXITED, PROCESS_OUTPUT, ProcessClosed, ProcessExited, ReadChunk,
    ReadParams, ReadResult, ResizeParams, RpcError, SandboxParams, SandboxType, SignalParams,
    StartParams, StartResult, TerminateParams, TerminateResult, WriteParams, WriteResult, base64,
};
use outpost_rpc::{MemoryCharge, charged_bytes};

use super::{feed::EventEncoder, notifier::Notifier};
use crate::{
    connection::{Caller, Reply},
    convert::{self, MAX_NAME_BYTES},
};

/// Size of a response without its chunks.
const RESPONSE_OVERHEAD_BYTES: usize = 512;
/// Size of a chunk without its output.
const CHUNK_OVERHEAD_BYTES: usize = 64;
/// Size of a decision without its host and its reason.
const RECORD_OVERHEAD_BYTES: usize = 384;
/// Output bytes in one response, whatever the client requests. Encoded as base64 it still
/// fits into the largest message.
const MAX_PAGE_BYTES: usize = 45 * 1024 * 1024;

/// Starts a process, responds, and then starts to push its events, so that the response
/// always precedes the first event.
pub(crate) async fn start(caller: Caller, params: StartParams, reply: Reply) {
    let started = try_start(&caller, params).await;
    if let Some(((process, sandbox_type), reply)) = reply.accept(started) {
        reply.send(Ok(StartResult {
            process_id: process.id().to_owned(),
            sandbox_type,
        }));
        caller.session.hand_over(&process);
    }
}

async fn try_start(
    caller: &Caller,
    params: StartParams,
) -> Result<(Process, SandboxType), RpcError> {
    let sandbox = params.sandbox.as_ref();
    let asks_for_none = sandbox.is_some_and(SandboxParams::asks_for_none);
    let allowed = caller.connection.check_unsandboxed(asks_for_none);
    allowed.map_err(convert::not_permitted)?;
    let server = &caller.connection.server;
    let policies = &server.settings.network_policies;
    let start = Start::from_params(params, &server.host.environment, policies)
        .map_err(|invalid| RpcError::invalid_params(invalid.to_string()))?;
    let is_sandboxed = start.sandbox.is_some()
        || start.needs_sandbox()
        || caller.connection.confines_all()
        || caller.connection.has_network_policy();
    let sandbox_type = match is_sandboxed {
        true => SandboxType::LinuxSeccomp,
        false => SandboxType::None,
    };
    let started = caller.connection.start(&caller.session, start).await;
    let process = started.map_err(|error| convert::start_error(&error))?;
    Ok((process, sandbox_type))
}

/// Queues bytes for stdin, which keep `memory`. Waits while the queue is full.
pub(crate) async fn write(
    session: Session,
    params: WriteParams,
    memory: Option<MemoryCharge>,
) -> Result<WriteResult, RpcError> {
    if params.chunk.is_none() && !params.close_stdin {
        return Err(RpcError::invalid_params("chunk is missing"));
    }
    match &params.write_id {
        Some(id) if id.is_empty() => {
            return Err(RpcError::invalid_params("writeId must not be empty"));
        }
        Some(id) => convert::check_length("writeId", id, MAX_NAME_BYTES)?,
        None => {}
    }
    let bytes = params.chunk.map(|chunk| charged_bytes(chunk.0, memory));
    let status = session.write(
        &params.process_id,
        bytes.unwrap_or_default(),
        params.write_id,
        params.close_stdin,
    );
    Ok(WriteResult {
        status: status.await,
    })
}

/// Terminates a process, or cancels its start.
pub(crate) fn terminate(session: &Session, params: &TerminateParams) -> TerminateResult {
    let grace = params.grace_ms.map(Duration::from_millis);
    let terminated = session.terminate(&params.process_id, grace, params.tree);
    TerminateResult {
        running: terminated == Terminated::Running,
    }
}

/// Signals a process. Waits for a start in flight.
pub(crate) async fn signal(session: Session, params: SignalParams) -> Result<Empty, RpcError> {
    session.wait_started(&params.process_id).await;
    session.signal(&params.process_id, params.signal);
    Ok(Empty {})
}

/// Resizes the terminal of a process. Waits for a start in flight.
pub(crate) async fn resize(session: Session, params: ResizeParams) -> Result<Empty, RpcError> {
    if params.size.rows == 0 || params.size.cols == 0 {
        let message = "size rows and cols must be greater than 0";
        return Err(RpcError::invalid_params(message));
    }
    session.wait_started(&params.process_id).await;
    let resized = session.resize(&params.process_id, params.size);
    resized.map_err(|error| convert::resize_error(&error))?;
    Ok(Empty {})
}

/// Responds with the decisions and the traffic of the proxy of a process.
pub(crate) async fn network(caller: Caller, params: NetworkParams, reply: Reply) {
    let activity = find(&caller, &params.process_id).and_then(|process| {
        let activity = process.network_activity().cloned();
        activity.ok_or_else(|| {
            let id = params.process_id;
            RpcError::invalid_request(format!("process {id} has no managed network"))
        })
    });
    let Some((activity, reply)) = reply.accept(activity) else {
        return;
    };
    let (records, dropped_decisions) = activity.records();
    let expected = records.iter().fold(RESPONSE_OVERHEAD_BYTES, |sum, record| {
        let NetworkDecision { reason, host, .. } = &record.decision;
        sum + RECORD_OVERHEAD_BYTES + reason.len() + host.len()
    });
    let reserved = caller.connection.reserve(expected).await;
    let Some((reservation, reply)) = reply.accept(reserved) else {
        return;
    };
    let decisions = records.iter().map(|record| NetworkRecord {
        decision: record.decision.clone(),
        sent_bytes: record.sent_bytes(),
        received_bytes: record.received_bytes(),
    });
    let decisions: Vec<_> = decisions.collect();
    let result = NetworkResult {
        decision_count: dropped_decisions + decisions.len() as u64,
        dropped_decisions,
        lost_decisions: activity.dropped_events(),
        bytes: activity.bytes(),
        decisions,
    };
    reply.send_large(result, expected, reservation);
}

fn find(caller: &Caller, id: &str) -> Result<Process, RpcError> {
    caller.session.find(id).map_err(|error| {
        RpcError::invalid_request(error.to_string()).with_kind(ErrorKind::UnknownProcess)
    })
}

/// Reads a page of the journal. Responds at once if there are events after the cursor;
/// otherwise waits in a task of its own, so that the lane is not blocked.
pub(crate) async fn read(caller: Caller, params: ReadParams, reply: Reply) {
    let found = find(&caller, &params.process_id);
    let Some((process, reply)) = reply.accept(found) else {
        return;
    };
    let after = Seq(params.after_seq.unwrap_or(0));
    let max_bytes = params
        .max_bytes
        .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0));
    if wait.is_zero() || process.has_unseen_for(after) {
        return respond(&caller, &process, after, max_bytes, reply).await;
    }
    let long_polls = caller.connection.long_polls.clone();
    long_polls.spawn(async move {
        tokio::select! {
            () = process.wait_unseen_for(after) => {}
            () = tokio::time::sleep(wait) => {}
            () = caller.connection.gone.cancelled() => return,
            () = caller.connection.replaced.cancelled() => {
                let error = RpcError::invalid_request("session has been resumed by another connection");
                return reply.reject(error.with_kind(ErrorKind::SessionReplaced));
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
    let encoded = |bytes: usize| bytes / 3 * 4 + RESPONSE_OVERHEAD_BYTES;
    let bytes = process.page_bytes(after, page_limit(process, after, max_bytes));
    // Without memory for the page, the answer has one chunk.
    let least = encoded(process.page_bytes(after, Some(1)));
    let reserved = caller.connection.reserve_or(encoded(bytes), least).await;
    let Some(((reservation, is_whole), reply)) = reply.accept(reserved) else {
        return;
    };
    let limit = match is_whole {
        true => page_limit(process, after, max_bytes),
        false => Some(1),
    };
    let page = process.page(after, limit);
    let sizes = page.chunks.iter().map(|chunk| chunk.bytes.len());
    let expected = sizes.fold(RESPONSE_OVERHEAD_BYTES, |sum, bytes| {
        sum + base64::encoded_len(bytes) + CHUNK_OVERHEAD_BYTES
    });
    if !caller.cross_session {
        process.resume_eviction();
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
        ended_by: page.exit.and_then(|exit| exit.ended_by),
        usage: page.exit.and_then(|exit| exit.usage),
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

/// Encodes each event of a process as one notification: `process/output`,
/// `process/exited`, `process/closed`.
pub(crate) struct ExecEventEncoder {
    process: Process,
    encoder: OutputEncoder,
}

impl ExecEventEncoder {
    pub(crate) fn new(process: &Process) -> Self {
        ExecEventEncoder {
            process: process.clone(),
            encoder: OutputEncoder::new(process.id()),
        }
    }
}

impl EventEncoder for ExecEventEncoder {
    fn encode(&mut self, notifier: &mut Notifier<'_>, event: &Event) {
        match event {
            Event::Output(chunk) => {
                let len = self
                    .encoder
                    .encoded_len(chunk.seq.0, chunk.stream, chunk.bytes.len());
                notifier.encode(PROCESS_OUTPUT, len, |out| {
                    self.encoder
                        .encode(out, chunk.seq.0, chunk.stream, &chunk.bytes);
                });
            }
            Event::Exited { seq, exit } => notifier.notify(
                PROCESS_EXITED,
                &ProcessExited {
                    process_id: self.process.id().to_owned(),
                    seq: seq.0,
                    exit_code: exit.code,
                    sandbox_denied: Some(exit.sandbox_denied),
                    ended_by: exit.ended_by,
                    usage: exit.usage,
                },
            ),
            Event::Closed { seq, .. } => notifier.notify(
                PROCESS_CLOSED,
                &ProcessClosed {
                    process_id: self.process.id().to_owned(),
                    seq: seq.0,
                },
            ),
        }
    }
}
