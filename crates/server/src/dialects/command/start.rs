//! `command/exec`.

use outpost_engine::{Process, StartError};
use outpost_protocol::{CommandParams, OutputDeltaEncoder, RpcError, Setting};

use super::{exit_message::CommandResponse, sandbox_policy};
use crate::{
    connection::{Reply, Scope},
    convert::{self, COMMAND},
    dialects::scoped::{Output, ProcessReporter, StartRequest},
};

/// Starts a command. The response follows its exit and its streamed output. `name` is its
/// id within the scope.
pub(crate) async fn exec(scope: Scope, name: String, params: CommandParams, reply: Reply) {
    match try_exec(&scope, name, params).await {
        Err(error) => reply.send::<()>(Err(error)),
        Ok((process, output)) => {
            let frame = OutputDeltaEncoder::command(process.id());
            let response = CommandResponse::new(reply);
            let reporter = ProcessReporter::new(&scope, &process, output, frame, response);
            scope.follow(&process, reporter);
        }
    }
}

async fn try_exec(
    scope: &Scope,
    name: String,
    params: CommandParams,
) -> Result<(Process, Output), RpcError> {
    let settings = scope.server().settings();
    sandbox_policy::check_pair(&params)?;
    check(&params)?;
    let stdio = StartRequest::stdio(&COMMAND, params.tty, params.stream_stdin, params.size)?;
    let millis = Setting::switched(params.timeout_ms, params.disable_timeout);
    let timeout = StartRequest::timeout(&COMMAND, millis, settings)?;
    let cap = Setting::switched(params.output_bytes_cap, params.disable_output_cap);
    let streamed = params.tty || params.stream_stdout_stderr;
    let output = Output::new(streamed, cap, settings);
    let host = scope.server().host();
    let server_cwd = host.info.cwd.as_path();
    let cwd = params.cwd.as_ref();
    let cwd = cwd.map_or_else(|| server_cwd.to_owned(), |cwd| server_cwd.join(cwd));
    let (source, sandbox) = sandbox_policy::policy(&params, &cwd, &settings.profiles)?;
    let request = StartRequest {
        name,
        argv: params.command,
        cwd,
        env: host
            .environment
            .for_child(Some(&settings.command_env), params.env),
        sandbox,
        stdio,
        timeout,
    };
    let started = scope.start(request.into_start(settings)).await;
    let process = started.map_err(|error| match &error {
        StartError::Sandbox(error) => source.start_error(error),
        other => COMMAND.start_error(other),
    })?;
    Ok((process, output))
}

fn check(params: &CommandParams) -> Result<(), RpcError> {
    let invalid = |message: &str| Err(RpcError::invalid_params(message));
    if params.command.is_empty() {
        return Err(RpcError::invalid_request("command must not be empty"));
    }
    if params.disable_timeout && params.timeout_ms.is_some() {
        return invalid("command/exec cannot set both timeoutMs and disableTimeout");
    }
    if params.disable_output_cap && params.output_bytes_cap.is_some() {
        return invalid("command/exec cannot set both outputBytesCap and disableOutputCap");
    }
    match &params.process_id {
        None if params.tty || params.stream_stdin || params.stream_stdout_stderr => {
            Err(RpcError::invalid_request(
                "command/exec tty or streaming requires a client-supplied processId",
            ))
        }
        None => Ok(()),
        Some(id) => convert::check_scoped_name("processId", id),
    }
}
