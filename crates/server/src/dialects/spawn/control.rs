//! `process/writeStdin`, `process/resizePty`, `process/kill`.

use outpost_protocol::{KillParams, ResizePtyParams, WriteStdinParams};

use crate::{
    connection::{Reply, Scope},
    convert::SPAWN,
    dialects::scoped,
};

/// Queues bytes for stdin. Waits while the queue is full.
pub(crate) async fn write_stdin(scope: Scope, params: WriteStdinParams, reply: Reply) {
    let delta = params.delta_base64.as_deref();
    let handle = &params.process_handle;
    let written = scoped::write(&scope, &SPAWN, handle, delta, params.close_stdin).await;
    reply.send(written);
}

/// Resizes the terminal.
pub(crate) async fn resize_pty(scope: Scope, params: ResizePtyParams, reply: Reply) {
    let handle = &params.process_handle;
    reply.send(scoped::resize(&scope, &SPAWN, handle, params.size).await);
}

/// Kills a process.
pub(crate) async fn kill(scope: Scope, params: KillParams, reply: Reply) {
    reply.send(scoped::kill(&scope, &SPAWN, &params.process_handle).await);
}
