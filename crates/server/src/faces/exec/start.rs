//! `process/start`.

use std::time::Duration;

use outpost_engine::{Process, Reservation, Start, StartError, Terminal};
use outpost_protocol::{RpcError, SandboxType, StartParams, StartResult};

use crate::{
    connection::{Caller, Reply},
    convert,
};

/// Starts a process, answers, and then begins to push its events: the answer
/// always comes before the first of them.
pub(crate) async fn start(caller: Caller, params: StartParams, reply: Reply) {
    match try_start(&caller, params).await {
        Err(refusal) => reply.send::<()>(Err(refusal)),
        Ok((process, sandbox_type)) => {
            reply.send(Ok(StartResult {
                process_id: process.id().to_owned(),
                sandbox_type,
            }));
            caller.session.hand_over(&process);
        }
    }
}

async fn try_start(
    caller: &Caller,
    params: StartParams,
) -> Result<(Process, SandboxType), RpcError> {
    check(&params)?;
    // Reserved before anything is waited for, so that a terminate finds it.
    let start = start_of(caller, params);
    let sandbox_type = match start.sandbox {
        Some(_) => SandboxType::LinuxSeccomp,
        None => SandboxType::None,
    };
    let reserved = caller.session.reserve(&start);
    let reservation: Reservation = reserved.map_err(|error| convert::start_error(&error))?;
    let _place = caller.running.acquire().await;
    let engine = caller.server.engine();
    let started = engine.start(&caller.session, reservation, start).await;
    let process = started.map_err(|error: StartError| convert::start_error(&error))?;
    Ok((process, sandbox_type))
}

fn check(params: &StartParams) -> Result<(), RpcError> {
    let invalid = |words: &str| Err(RpcError::invalid_params(words));
    if params.process_id.is_empty() {
        return invalid("processId must not be empty");
    }
    convert::check_name("processId", &params.process_id)?;
    if params.argv.is_empty() {
        return invalid("argv must not be empty");
    }
    match params.size {
        Some(_) if !params.tty => return invalid("size requires tty: true"),
        Some(size) => convert::check_size(size)?,
        None => {}
    }
    if params.enforce_managed_network {
        return invalid(
            "sandbox intent cannot be enforced on this executor: a managed network is not supported by this version",
        );
    }
    Ok(())
}

fn start_of(caller: &Caller, params: StartParams) -> Start {
    let policy = params.env_policy.map(convert::env_policy);
    let environment = &caller.server.host().environment;
    let sandbox = params.sandbox.as_ref();
    Start {
        sandbox: sandbox.and_then(|sandbox| convert::sandbox(sandbox, params.cwd.as_path())),
        env: environment.for_child(policy.as_ref(), convert::overlay(params.env)),
        id: params.process_id,
        argv: params.argv,
        arg0: params.arg0,
        cwd: params.cwd.into_path(),
        terminal: if params.tty {
            Terminal::Pty(params.size.map_or(convert::DEFAULT_SIZE, convert::size))
        } else {
            Terminal::Pipes {
                stdin: params.pipe_stdin,
            }
        },
        metadata: params.metadata.unwrap_or_default(),
        timeout: params.timeout_ms.map(Duration::from_millis),
        drain: None,
        retain_bytes: params
            .retain_bytes
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        kill_grace: params
            .kill_grace_ms
            .map_or(Duration::ZERO, Duration::from_millis),
    }
}
