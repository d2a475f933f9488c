//! `process/spawn`.

use outpost_engine::{EnvPolicy, Process};
use outpost_protocol::{Empty, OutputDeltaEncoder, RpcError, SpawnParams};

use super::exit_message::SpawnExitMessage;
use crate::{
    connection::{Reply, Scope},
    convert::{self, SPAWN},
    dialects::scoped::{Output, ProcessReporter, StartRequest},
};

/// Starts a process, responds, and then starts to push its output, so that the response
/// always comes first.
pub(crate) async fn spawn(scope: Scope, params: SpawnParams, reply: Reply) {
    match try_spawn(&scope, params).await {
        Err(error) => reply.send::<()>(Err(error)),
        Ok((process, output)) => {
            reply.send(Ok(Empty {}));
            let frame = OutputDeltaEncoder::spawn(process.id());
            let reporter = ProcessReporter::new(&scope, &process, output, frame, SpawnExitMessage);
            scope.follow(&process, reporter);
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
    let stdio = StartRequest::stdio(&SPAWN, params.tty, params.stream_stdin, params.size)?;
    let timeout = StartRequest::timeout(&SPAWN, params.timeout_ms, settings)?;
    let streamed = params.tty || params.stream_stdout_stderr;
    let output = Output::new(streamed, params.output_bytes_cap, settings);
    // The spawn dialect passes on the whole environment of the server.
    let all = EnvPolicy {
        ignore_default_excludes: true,
        ..EnvPolicy::default()
    };
    let request = StartRequest {
        name: params.process_handle,
        argv: params.command,
        cwd: params.cwd.into_path(),
        env: scope
            .server()
            .host()
            .environment
            .for_child(Some(&all), params.env),
        sandbox: None,
        stdio,
        timeout,
    };
    let started = scope.start(request.into_start(settings)).await;
    let process = started.map_err(|error| SPAWN.start_error(&error))?;
    Ok((process, output))
}
