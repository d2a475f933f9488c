//! `command/exec` with `argv`.

use outpost_engine::{Process, Size, Start, Terminal};
use outpost_protocol::{RpcError, V0ExecParams, V0ExecResult};

use super::words::V0Words;
use crate::{
    connection::{Reply, Scope},
    convert,
    faces::scoped::{Account, Output, Wish},
};

/// The longest `processId`, in bytes.
const MAX_ID_BYTES: usize = 256;
/// This face knows no sizes.
const SIZE: Size = Size { rows: 24, cols: 80 };

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
            let words = V0Words::new(&process);
            let output = Output::Streamed { cap: None };
            scope.follow(&process, Account::new(&scope, &process, output, words));
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
    if params.process_id.len() > MAX_ID_BYTES {
        return invalid("processId must be at most 256 bytes long");
    }
    let wish = Wish {
        name: params.process_id,
        argv: params.argv,
        cwd: params.cwd.into_path(),
        env: (scope.server().host().environment).for_child(None, convert::overlay(params.env)),
        terminal: if params.tty {
            Terminal::Pty(SIZE)
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
