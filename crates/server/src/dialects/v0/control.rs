//! `command/exec/write` and `command/exec/terminate`.

use std::time::Duration;

use bytes::Bytes;
use outpost_engine::{Terminated, WriteStatus};
use outpost_protocol::{
    ErrorKind, RpcError, V0TerminateParams, V0TerminateResult, V0WriteParams, V0WriteResult,
};

use crate::connection::{Reply, Scope};

/// Queues bytes for stdin. Waits while the queue is full.
pub(crate) async fn write(scope: Scope, params: V0WriteParams, reply: Reply) {
    let id = &params.process_id;
    let bytes = Bytes::from(params.chunk.0);
    let rejected = |kind, message: String| Err(RpcError::invalid_request(message).with_kind(kind));
    reply.send(match scope.session().write(id, bytes, None, false).await {
        WriteStatus::Accepted => Ok(V0WriteResult { accepted: true }),
        WriteStatus::StdinClosed => rejected(
            ErrorKind::StdinClosed,
            format!("stdin is closed for process {id}"),
        ),
        WriteStatus::UnknownProcess | WriteStatus::Starting => rejected(
            ErrorKind::UnknownProcess,
            format!("unknown process id {id}"),
        ),
    });
}

/// Kills a process with its tree. Waits for a start in flight.
pub(crate) async fn terminate(scope: Scope, params: V0TerminateParams, reply: Reply) {
    let session = scope.session();
    session.wait_started(&params.process_id).await;
    let found = session.terminate(&params.process_id, Some(Duration::ZERO), false);
    reply.send(Ok(V0TerminateResult {
        running: found == Terminated::Running,
    }));
}
