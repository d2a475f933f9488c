//! `command/exec`.

use outpost_engine::Process;
use outpost_protocol::{CommandParams, RpcError};

use super::{confinement, words::CommandWords};
use crate::{
    connection::{Reply, Scope},
    convert::COMMAND,
    faces::scoped::{Account, Output, Wish},
};

/// The longest `processId`, in bytes.
const MAX_ID_BYTES: usize = 256;

/// Starts a command. It is answered when it is over, behind all that is told
/// of it before. `name` is what the scope knows it by.
pub(crate) async fn exec(scope: Scope, name: String, params: CommandParams, reply: Reply) {
    match try_exec(&scope, name, params).await {
        Err(refusal) => reply.send::<()>(Err(refusal)),
        Ok((process, output)) => {
            let words = CommandWords::new(&process, reply);
            scope.follow(&process, Account::new(&scope, &process, output, words));
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
    let millis = match params.disable_timeout {
        true => None,
        false => Some(
            params
                .timeout_ms
                .unwrap_or(settings.command_timeout.as_millis() as i64),
        ),
    };
    let timeout = Wish::timeout(&COMMAND, millis)?;
    let cap = match params.disable_output_cap {
        true => None,
        false => Some(params.output_bytes_cap.unwrap_or(settings.output_bytes_cap)),
    };
    confinement::check(&params)?;
    let output = if params.tty || params.stream_stdout_stderr {
        Output::Streamed { cap }
    } else {
        Output::Kept { cap }
    };
    let host = scope.server().host();
    let here = host.info.cwd.as_path();
    let wish = Wish {
        name,
        argv: params.command,
        cwd: params
            .cwd
            .map_or_else(|| here.to_owned(), |cwd| here.join(cwd)),
        env: host
            .environment
            .for_child(Some(&settings.command_env), params.env),
        terminal,
        timeout,
    };
    let started = scope.start(wish.into_start(settings)).await;
    let process = started.map_err(|error| COMMAND.start_error(&error))?;
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
        Some(id) if id.len() > MAX_ID_BYTES => invalid("processId must be at most 256 bytes long"),
        _ => Ok(()),
    }
}
