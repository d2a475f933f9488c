//! Runs asynchronous commands.

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use tokio::runtime::Builder;

use crate::{
    exit,
    render::out::{finish, is_broken_pipe},
};

/// Timeout of the runtime's shutdown, which may have to abandon blocking work.
const RUNTIME_SHUTDOWN: Duration = Duration::from_millis(50);

/// Runs a command. An error is reported on one line, with exit code 1.
pub(super) fn run_command(command: impl Future<Output = anyhow::Result<ExitCode>>) -> ExitCode {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime");
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return finish(Err(error)),
    };
    let outcome = runtime.block_on(command);
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN);
    finish(outcome)
}

/// Runs a command that uses files. The exit code tells whether a server was unreachable.
pub(super) fn run_file_command(
    command: impl Future<Output = anyhow::Result<ExitCode>>,
) -> ExitCode {
    run_command(async {
        match command.await {
            // A broken pipe is not reported.
            Err(error) if is_broken_pipe(&error) => Err(error),
            outcome => Ok(outcome.unwrap_or_else(|error| exit::with_error(&error))),
        }
    })
}
