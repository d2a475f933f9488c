//! `process/signal`, `process/terminate`, `process/resize`: what never waits
//! behind other work.

use std::time::Duration;

use outpost_engine::{Seq, Terminated};
use outpost_protocol::{
    AckParams, Empty, ResizeParams, RpcError, SignalParams, TerminateParams, TerminateResult,
};

use crate::{
    connection::{Caller, Reply},
    convert,
};

/// The caller has everything of a process up to a number.
pub(crate) fn acknowledge(caller: &Caller, params: &AckParams) {
    caller
        .session
        .acknowledge(&params.process_id, Seq(params.seq));
}

/// Ends a process, or the start of one.
pub(crate) fn terminate(
    caller: &Caller,
    params: &TerminateParams,
) -> Result<TerminateResult, RpcError> {
    let grace = params.grace_ms.map(Duration::from_millis);
    let found = caller
        .session
        .terminate(&params.process_id, grace, params.tree);
    Ok(TerminateResult {
        running: found == Terminated::Running,
    })
}

/// Signals a process, as soon as it exists.
pub(crate) async fn signal(caller: Caller, params: SignalParams, reply: Reply) {
    caller.session.settled(&params.process_id).await;
    caller
        .session
        .signal(&params.process_id, convert::signal(params.signal));
    reply.send(Ok(Empty {}));
}

/// Gives a terminal another size, as soon as it exists.
pub(crate) async fn resize(caller: Caller, params: ResizeParams, reply: Reply) {
    if let Err(refusal) = convert::check_size(params.size) {
        return reply.send::<()>(Err(refusal));
    }
    caller.session.settled(&params.process_id).await;
    let resized = caller
        .session
        .resize(&params.process_id, convert::size(params.size));
    reply.send(
        resized
            .map(|()| Empty {})
            .map_err(|error| convert::resize_error(&error)),
    );
}
