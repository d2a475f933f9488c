//! `command/exec`.

use outpost_engine::{Process, StartError};
use outpost_protocol::{CommandParams, DeltaFrame, RpcError, Setting};

use super::{confinement, words::CommandWords};
use crate::{
    connection::{Reply, Scope},
    convert::{self, COMMAND},
    faces::scoped::{Account, Output, Wish},
};

/// Starts a command. It is answered when it is over, behind all that is told
/// of it before. `name` is what the scope knows it by.
pub(crate) async fn exec(scope: Scope, name: String, params: CommandParams, reply: Reply) {
    match try_exec(&scope, name, params).await {
        Err(refusal) => reply.send::<()>(Err(refusal)),
        Ok((process, output)) => {
            let frame = DeltaFrame::command(process.id());
            let words = CommandWords::new(reply);
            let account = Account::new(&scope, &process, output, frame, words);
            scope.follow(&process, account);
        }
    }
}

async fn try_exec(
    scope: &Scope,
    name: String,
    params: CommandParams,
) -> Result<(Process, Output), RpcError> {
    let settings = scope.server().settings();
    confinement::check_pair(&params)?;
    check(&params)?;
    let terminal = Wish::terminal(&COMMAND, params.tty, params.stream_stdin, params.size)?;
    let millis = Setting::switched(params.timeout_ms, params.disable_timeout);
    let timeout = Wish::timeout(&COMMAND, millis, settings)?;
    let cap = Setting::switched(params.output_bytes_cap, params.disable_output_cap);
    let streamed = params.tty || params.stream_stdout_stderr;
    let output = Output::new(streamed, cap, settings);
    let host = scope.server().host();
    let here = host.info.cwd.as_path();
    let cwd = params.cwd.as_ref();
    let cwd = cwd.map_or_else(|| here.to_owned(), |cwd| here.join(cwd));
    let (said, sandbox) = confinement::policy(&params, &cwd, &settings.profiles)?;
    let wish = Wish {
        name,
        argv: params.command,
        cwd,
        env: host
            .environment
            .for_child(Some(&settings.command_env), params.env),
        sandbox,
        terminal,
        timeout,
    };
    let started = scope.start(wish.into_start(settings)).await;
    let process = started.map_err(|error| match &error {
        StartError::Sandbox(refusal) => said.refusal(refusal),
        other => COMMAND.start_error(other),
    })?;
    Ok((process, output))
}

fn check(params: &CommandParams) -> Result<(), RpcError> {
    let invalid = |words: &str| Err(RpcError::invalid_params(words));
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
