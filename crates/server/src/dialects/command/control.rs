//! `command/exec/write`, `command/exec/resize`, `command/exec/terminate`.

use outpost_protocol::{CommandResizeParams, CommandTerminateParams, CommandWriteParams};

use crate::{
    connection::{Reply, Scope},
    convert::COMMAND,
    dialects::scoped,
};

/// Queues bytes for stdin. Waits while the queue is full.
pub(crate) async fn write(scope: Scope, params: CommandWriteParams, reply: Reply) {
    let delta = params.delta_base64.as_deref();
    let id = &params.process_id;
    let written = scoped::write(&scope, &COMMAND, id, delta, params.close_stdin).await;
    reply.send(written);
}

/// Resizes the terminal.
pub(crate) async fn resize(scope: Scope, params: CommandResizeParams, reply: Reply) {
    let id = &params.process_id;
    reply.send(scoped::resize(&scope, &COMMAND, id, params.size).await);
}

/// Kills a command.
pub(crate) async fn terminate(scope: Scope, params: CommandTerminateParams, reply: Reply) {
    reply.send(scoped::kill(&scope, &COMMAND, &params.process_id).await);
}
