//! Handles notifications from the server.

use std::sync::Arc;

use outpost_journal::Seq;
use outpost_protocol::{
    HTTP_BODY_DELTA, PROCESS_CLOSED, PROCESS_EXITED, ProcessClosed, ProcessOutput, ReceivedExited,
    parse_params,
};
use serde_json::value::RawValue;

use super::{connection::Connection, process_table::ProcessTable};
use crate::event::UnnumberedEvent;

/// Handles `process/output`, which is decoded without an intermediate `RawValue`.
pub(super) fn output(
    table: &Arc<ProcessTable>,
    connection: &Connection,
    output: ProcessOutput<'_>,
) {
    let event = UnnumberedEvent::Output(output.stream, output.chunk.into_owned().into());
    table.receive(connection, &output.process_id, Seq(output.seq), event);
}

/// Handles any other notification.
pub(super) fn dispatch(
    table: &Arc<ProcessTable>,
    connection: &Connection,
    method: &str,
    params: Option<&RawValue>,
) {
    let result = match method {
        PROCESS_EXITED => parse_params::<ReceivedExited>(params).map(|exited| {
            let event = UnnumberedEvent::Exited {
                code: exited.exit_code,
                sandbox_denied: exited.sandbox_denied,
            };
            table.receive(connection, &exited.process_id, Seq(exited.seq), event);
        }),
        PROCESS_CLOSED => parse_params::<ProcessClosed>(params).map(|closed| {
            let seq = Seq(closed.seq);
            table.receive(connection, &closed.process_id, seq, UnnumberedEvent::Closed);
        }),
        HTTP_BODY_DELTA => parse_params(params).map(|delta| connection.bodies.receive(delta)),
        _ => Ok(()),
    };
    if let Err(error) = result {
        tracing::warn!(%error, method, "invalid notification");
    }
}
