//! The v0 dialect: `command/exec` with `argv`, of the first exec protocol. It responds at
//! the start; notifications follow.

use std::{sync::Arc, time::Duration};

use outpost_engine::{Process, Start, Stdio, TerminalSize, Terminated, WriteStatus};
use outpost_protocol::{
    ErrorKind, RpcError, V0ExecParams, V0ExecResult, V0TerminateParams, V0TerminateResult,
    V0WriteParams, V0WriteResult,
};
use outpost_rpc::{MemoryCharge, charged_bytes};

use super::{
    ConnectionSession,
    dialect::MAX_SCOPED_NAME_BYTES,
    process_reporter::{ExitMessage, Output},
};
use crate::{connection::Reply, convert};

/// Starts a process, responds, and then starts to push its output, so that the response
/// always comes first.
pub(crate) async fn exec(session: Arc<ConnectionSession>, params: V0ExecParams, reply: Reply) {
    let started = try_exec(&session, params).await;
    if let Some((process, reply)) = reply.accept(started) {
        reply.send(Ok(V0ExecResult {
            process_id: process.id().to_owned(),
            pid: process.pid(),
            running: true,
            exit_code: None,
            stdout: None,
            stderr: None,
        }));
        let output = Output {
            streamed: true,
            cap: None,
        };
        session.report(&process, output, ExitMessage::V0);
    }
}

async fn try_exec(session: &ConnectionSession, params: V0ExecParams) -> Result<Process, RpcError> {
    if params.argv.is_empty() {
        return Err(RpcError::invalid_params("argv must not be empty"));
    }
    if params.process_id.is_empty() {
        return Err(RpcError::invalid_params("processId must not be empty"));
    }
    convert::check_length("processId", &params.process_id, MAX_SCOPED_NAME_BYTES)?;
    let env = params.env.into_iter();
    let env = env.map(|(name, value)| (name, Some(value))).collect();
    let start = Start {
        id: params.process_id,
        argv: params.argv,
        arg0: params.arg0,
        cwd: params.cwd.into_path(),
        env: (session.connection.server.host.environment).for_child(None, env),
        stdio: if params.tty {
            // The v0 dialect has no sizes.
            Stdio::Pty {
                size: TerminalSize::default(),
            }
        } else {
            Stdio::Pipes { stdin: false }
        },
        ..session.start_defaults()
    };
    let started = session.start(start).await;
    started.map_err(|error| convert::start_error(&error))
}

/// Queues bytes for stdin, which keep `memory`. Waits while the queue is full.
pub(crate) async fn write(
    session: Arc<ConnectionSession>,
    params: V0WriteParams,
    memory: Option<MemoryCharge>,
) -> Result<V0WriteResult, RpcError> {
    let id = &params.process_id;
    let bytes = charged_bytes(params.chunk.0, memory);
    let (kind, message) = match session.inner.write(id, bytes, None, false).await {
        WriteStatus::Accepted => return Ok(V0WriteResult { accepted: true }),
        WriteStatus::StdinClosed => (
            ErrorKind::StdinClosed,
            format!("stdin is closed for process {id}"),
        ),
        WriteStatus::UnknownProcess | WriteStatus::Starting => (
            ErrorKind::UnknownProcess,
            format!("unknown process id {id}"),
        ),
    };
    Err(RpcError::invalid_request(message).with_kind(kind))
}

/// Kills a process with its tree. Waits for a start in flight.
pub(crate) async fn terminate(
    session: Arc<ConnectionSession>,
    params: V0TerminateParams,
) -> Result<V0TerminateResult, RpcError> {
    let session = &session.inner;
    session.wait_started(&params.process_id).await;
    let found = session.terminate(&params.process_id, Some(Duration::ZERO), false);
    Ok(V0TerminateResult {
        running: found == Terminated::Running,
    })
}
