//! `command/exec` with `argv`.

use outpost_engine::{Process, Start, Stdio, TerminalSize};
use outpost_protocol::{OutputDeltaEncoder, RpcError, V0ExecParams, V0ExecResult};

use super::exit_message::V0ExitMessage;
use crate::{
    connection::{Reply, Scope},
    convert,
    dialects::scoped::{Output, ProcessReporter, StartRequest},
};

/// Starts a process, responds, and then starts to push its output, so that the response
/// always comes first.
pub(crate) async fn exec(scope: Scope, params: V0ExecParams, reply: Reply) {
    match try_exec(&scope, params).await {
        Err(error) => reply.send::<()>(Err(error)),
        Ok(process) => {
            reply.send(Ok(V0ExecResult {
                process_id: process.id().to_owned(),
                pid: process.pid(),
                running: true,
                exit_code: None,
                stdout: None,
                stderr: None,
            }));
            let frame = OutputDeltaEncoder::v0(process.id());
            let output = Output::Streamed { cap: None };
            let reporter = ProcessReporter::new(&scope, &process, output, frame, V0ExitMessage);
            scope.follow(&process, reporter);
        }
    }
}

async fn try_exec(scope: &Scope, params: V0ExecParams) -> Result<Process, RpcError> {
    let invalid = |message: &str| Err(RpcError::invalid_params(message));
    if params.argv.is_empty() {
        return invalid("argv must not be empty");
    }
    if params.process_id.is_empty() {
        return invalid("processId must not be empty");
    }
    convert::check_scoped_name("processId", &params.process_id)?;
    let request = StartRequest {
        name: params.process_id,
        argv: params.argv,
        cwd: params.cwd.into_path(),
        env: (scope.server().host().environment).for_child(None, convert::overlay(params.env)),
        sandbox: None,
        stdio: if params.tty {
            // The v0 dialect has no sizes.
            Stdio::Pty {
                size: TerminalSize::default(),
            }
        } else {
            Stdio::Pipes { stdin: false }
        },
        timeout: None,
    };
    let start = Start {
        arg0: params.arg0,
        ..request.into_start(scope.server().settings())
    };
    let started = scope.start(start).await;
    started.map_err(|error| convert::start_error(&error))
}
