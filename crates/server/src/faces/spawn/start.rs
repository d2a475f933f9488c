//! `process/spawn`.

use outpost_engine::{EnvPolicy, Process};
use outpost_protocol::{DeltaFrame, Empty, RpcError, SpawnParams};

use super::words::SpawnWords;
use crate::{
    connection::{Reply, Scope},
    convert::{self, SPAWN},
    faces::scoped::{Account, Output, Wish},
};

/// Starts a process, answers, and then begins to tell of it: the answer always
/// comes first.
pub(crate) async fn spawn(scope: Scope, params: SpawnParams, reply: Reply) {
    match try_spawn(&scope, params).await {
        Err(refusal) => reply.send::<()>(Err(refusal)),
        Ok((process, output)) => {
            reply.send(Ok(Empty {}));
            let frame = DeltaFrame::spawn(process.id());
            let account = Account::new(&scope, &process, output, frame, SpawnWords);
            scope.follow(&process, account);
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
    convert::check_scoped_name("processHandle", &params.process_handle)?;
    let terminal = Wish::terminal(&SPAWN, params.tty, params.stream_stdin, params.size)?;
    let timeout = Wish::timeout(&SPAWN, params.timeout_ms, settings)?;
    let streamed = params.tty || params.stream_stdout_stderr;
    let output = Output::new(streamed, params.output_bytes_cap, settings);
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
        sandbox: None,
        terminal,
        timeout,
    };
    let started = scope.start(wish.into_start(settings)).await;
    let process = started.map_err(|error| SPAWN.start_error(&error))?;
    Ok((process, output))
}
