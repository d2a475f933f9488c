//! The spawn dialect: `process/spawn` responds at the start, and `process/exited` reports
//! the end.

use std::sync::Arc;

use outpost_engine::{EnvPolicy, Process, Start};
use outpost_protocol::{
    Empty, KillParams, ResizePtyParams, RpcError, SpawnParams, WriteStdinParams,
};
use outpost_rpc::MemoryCharge;

use super::{
    ConnectionSession,
    dialect::{MAX_SCOPED_NAME_BYTES, SPAWN},
    process_reporter::{ExitMessage, Output},
};
use crate::{connection::Reply, convert};

/// Starts a process, responds, and then starts to push its output, so that the response
/// always comes first.
pub(crate) async fn spawn(session: Arc<ConnectionSession>, params: SpawnParams, reply: Reply) {
    let started = try_spawn(&session, params).await;
    if let Some(((process, output), reply)) = reply.accept(started) {
        reply.send(Ok(Empty {}));
        session.report(&process, output, ExitMessage::Spawn);
    }
}

async fn try_spawn(
    session: &ConnectionSession,
    params: SpawnParams,
) -> Result<(Process, Output), RpcError> {
    let server = &session.connection.server;
    if params.command.is_empty() {
        return Err(RpcError::invalid_request("command must not be empty"));
    }
    if params.process_handle.is_empty() {
        return Err(RpcError::invalid_request("processHandle must not be empty"));
    }
    convert::check_length(
        "processHandle",
        &params.process_handle,
        MAX_SCOPED_NAME_BYTES,
    )?;
    let output = Output {
        streamed: params.tty || params.stream_stdout_stderr,
        cap: params.output_bytes_cap.or(server.settings.output_bytes_cap),
    };
    // The spawn dialect passes on the whole environment of the server.
    let all = EnvPolicy {
        ignore_default_excludes: true,
        ..EnvPolicy::default()
    };
    let start = Start {
        stdio: SPAWN.stdio(params.tty, params.stream_stdin, params.size)?,
        timeout: SPAWN.timeout(params.timeout_ms, &server.settings)?,
        id: params.process_handle,
        argv: params.command,
        cwd: params.cwd.into_path(),
        env: server.host.environment.for_child(Some(&all), params.env),
        limits: params.limits.unwrap_or_default(),
        ..session.start_defaults()
    };
    let started = session.start(start).await;
    let process = started.map_err(|error| SPAWN.start_error(&error))?;
    Ok((process, output))
}

/// Writes to stdin. The bytes keep `memory`.
pub(crate) async fn write_stdin(
    session: Arc<ConnectionSession>,
    params: WriteStdinParams,
    memory: Option<MemoryCharge>,
) -> Result<Empty, RpcError> {
    let (name, delta) = (&params.process_handle, params.delta_base64);
    let close = params.close_stdin;
    session.write(&SPAWN, name, delta, close, memory).await
}

/// Resizes the terminal.
pub(crate) async fn resize_pty(
    session: Arc<ConnectionSession>,
    params: ResizePtyParams,
) -> Result<Empty, RpcError> {
    let name = &params.process_handle;
    session.resize(&SPAWN, name, params.size).await
}

/// Kills a process.
pub(crate) async fn kill(
    session: Arc<ConnectionSession>,
    params: KillParams,
) -> Result<Empty, RpcError> {
    session.kill(&SPAWN, &params.process_handle).await
}
