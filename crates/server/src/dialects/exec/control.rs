//! `process/signal`, `process/terminate`, `process/resize` and `process/ack`, which never
//! wait behind ordinary requests.

use std::time::Duration;

use outpost_engine::{Seq, Terminated};
use outpost_protocol::{
    AckParams, Empty, ResizeParams, RpcError, SignalParams, TerminateParams, TerminateResult,
};

use crate::{
    connection::{Caller, Reply},
    convert,
};

/// Acknowledges the events of a process up to a seq.
pub(crate) fn acknowledge(caller: &Caller, params: &AckParams) {
    caller
        .session
        .acknowledge(&params.process_id, Seq(params.seq));
}

/// Terminates a process, or cancels its start.
pub(crate) fn terminate(
    caller: &Caller,
    params: &TerminateParams,
) -> Result<TerminateResult, RpcError> {
    let grace = params.grace_ms.map(Duration::from_millis);
    let terminated = caller
        .session
        .terminate(&params.process_id, grace, params.tree);
    Ok(TerminateResult {
        running: terminated == Terminated::Running,
    })
}

/// Signals a process. Waits for a start in flight.
pub(crate) async fn signal(caller: Caller, params: SignalParams, reply: Reply) {
    caller.session.wait_started(&params.process_id).await;
    caller.session.signal(&params.process_id, params.signal);
    reply.send(Ok(Empty {}));
}

/// Resizes the terminal of a process. Waits for a start in flight.
pub(crate) async fn resize(caller: Caller, params: ResizeParams, reply: Reply) {
    if let Err(error) = convert::check_size(params.size) {
        return reply.send::<()>(Err(error));
    }
    caller.session.wait_started(&params.process_id).await;
    let resized = caller.session.resize(&params.process_id, params.size);
    reply.send(
        resized
            .map(|()| Empty {})
            .map_err(|error| convert::resize_error(&error)),
    );
}
