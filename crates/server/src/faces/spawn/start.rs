//! `process/spawn`.

use outpost_engine::{EnvPolicy, Process};
use outpost_protocol::{Empty, RpcError, SpawnParams};

use super::words::SpawnWords;
use crate::{
    connection::{Reply, Scope},
    convert::SPAWN,
    faces::scoped::{Account, Output, Wish},
};

/// The longest `processHandle`, in bytes.
const MAX_HANDLE_BYTES: usize = 256;

/// Starts a process, answers, and then begins to tell of it: the answer always
/// comes first.
pub(crate) async fn spawn(scope: Scope, params: SpawnParams, reply: Reply) {
    match try_spawn(&scope, params).await {
        Err(refusal) => reply.send::<()>(Err(refusal)),
        Ok((process, output)) => {
            reply.send(Ok(Empty {}));
            let words = SpawnWords::new(&process);
            scope.follow(&process, Account::new(&scope, &process, output, words));
        }
    }
}

async fn try_spawn(scope: &Scope, params: SpawnParams) -> Result<(Process, Output), RpcError> {
    let settings = scope.server().settings();
    if params.command.is_empty() {
        return Err(RpcError::invalid_request("command must not be empty"));
    }
    if params.process_handle.is_empty() {
        return Err(RpcError::invalid_request("processHandle must not be empty"));
    }
    if params.process_handle.len() > MAX_HANDLE_BYTES {
        return Err(RpcError::invalid_params(
            "processHandle must be at most 256 bytes long",
        ));
    }
    let terminal = Wish::terminal(&SPAWN, params.tty, params.stream_stdin, params.size)?;
    let default_timeout = settings.command_timeout.as_millis() as i64;
    let timeout = Wish::timeout(&SPAWN, params.timeout_ms.or(default_timeout))?;
    let cap = params.output_bytes_cap.or(settings.output_bytes_cap);
    let output = if params.tty || params.stream_stdout_stderr {
        Output::Streamed { cap }
    } else {
        Output::Kept { cap }
    };
    // Nothing is kept from it: it is the server's own environment.
    let all = EnvPolicy {
        ignore_default_excludes: true,
        ..EnvPolicy::default()
    };
    let wish = Wish {
        name: params.process_handle,
        argv: params.command,
        cwd: params.cwd.into_path(),
        env: scope
            .server()
            .host()
            .environment
            .for_child(Some(&all), params.env),
        terminal,
        timeout,
    };
    let started = scope.start(wish.into_start(settings)).await;
    let process = started.map_err(|error| SPAWN.start_error(&error))?;
    Ok((process, output))
}
