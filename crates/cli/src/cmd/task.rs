//! A command that talks to a server, from its beginning to its exit code.

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use tokio::runtime::Builder;

use crate::{
    exit,
    render::out::{conclude, is_broken_pipe},
};

/// How long the runtime may take to let go of what still blocks.
const LET_GO: Duration = Duration::from_millis(50);

/// Runs a command to its end; what goes wrong is one line and exit code 1.
pub(super) fn perform(command: impl Future<Output = anyhow::Result<ExitCode>>) -> ExitCode {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime");
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return conclude(Err(error)),
    };
    let outcome = runtime.block_on(command);
    runtime.shutdown_timeout(LET_GO);
    conclude(outcome)
}

/// The same for a command about files, which may be on servers: if one of those is
/// out of reach, the exit code says so.
pub(super) fn perform_on_files(
    command: impl Future<Output = anyhow::Result<ExitCode>>,
) -> ExitCode {
    perform(async {
        match command.await {
            // Who has read enough isn't told so.
            Err(error) if is_broken_pipe(&error) => Err(error),
            outcome => Ok(outcome.unwrap_or_else(|error| exit::with_error(&error))),
        }
    })
}
