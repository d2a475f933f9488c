//! `command/exec` with `argv`.

use outpost_engine::{Process, Start, Terminal};
use outpost_protocol::{DeltaFrame, RpcError, V0ExecParams, V0ExecResult};

use super::words::V0Words;
use crate::{
    connection::{Reply, Scope},
    convert,
    faces::scoped::{Account, Output, Wish},
};

/// Starts a process, answers, and then begins to tell of it: the answer always
/// comes first.
pub(crate) async fn exec(scope: Scope, params: V0ExecParams, reply: Reply) {
    match try_exec(&scope, params).await {
        Err(refusal) => reply.send::<()>(Err(refusal)),
        Ok(process) => {
            reply.send(Ok(V0ExecResult {
                process_id: process.id().to_owned(),
                pid: process.pid(),
                running: true,
                exit_code: None,
                stdout: None,
                stderr: None,
            }));
            let frame = DeltaFrame::v0(process.id());
            let output = Output::Streamed { cap: None };
            let account = Account::new(&scope, &process, output, frame, V0Words);
            scope.follow(&process, account);
        }
    }
}

async fn try_exec(scope: &Scope, params: V0ExecParams) -> Result<Process, RpcError> {
    let invalid = |words: &str| Err(RpcError::invalid_params(words));
    if params.argv.is_empty() {
        return invalid("argv must not be empty");
    }
    if params.process_id.is_empty() {
        return invalid("processId must not be empty");
    }
    convert::check_scoped_name("processId", &params.process_id)?;
    let wish = Wish {
        name: params.process_id,
        argv: params.argv,
        cwd: params.cwd.into_path(),
        env: (scope.server().host().environment).for_child(None, convert::overlay(params.env)),
        sandbox: None,
        terminal: if params.tty {
            // This face knows no sizes.
            Terminal::Pty(convert::DEFAULT_SIZE)
        } else {
            Terminal::Pipes { stdin: false }
        },
        timeout: None,
    };
    let start = Start {
        arg0: params.arg0,
        ..wish.into_start(scope.server().settings())
    };
    let started = scope.start(start).await;
    started.map_err(|error| convert::start_error(&error))
}
