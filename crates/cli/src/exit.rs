//! Runs commands, and turns their results into exit codes and final messages.

use std::{io, process::ExitCode, time::Duration};

use anyhow::Context;
use outpost_client::{DialError, Error, ErrorKind, Process, Signal, Terminate};
use tokio::runtime::Builder;

use crate::{
    args::UnusedAccess,
    console::Outcome,
    endpoint::UnknownHost,
    render::{
        errors,
        out::{excerpt, note},
    },
    transfer::LocationError,
    user_server::LaunchFailure,
};

/// Invalid command line.
const USAGE: u8 = 2;
/// Server unreachable, as with ssh.
pub(crate) const UNREACHABLE: u8 = 255;
/// An MCP tool reported an error.
pub(crate) const TOOL_FAILED: u8 = 3;
/// Exit code of a process that SIGINT ended, as in a shell.
pub(crate) const INTERRUPTED: u8 = SIGNALLED + 2;
/// Base of the exit code of a process that a signal ended.
const SIGNALLED: u8 = 128;
/// Exit code of a program whose output nobody reads any more, as if SIGPIPE had ended it.
pub(crate) const BROKEN_PIPE: u8 = SIGNALLED + 13;

/// Grace period of leftover processes.
const GRACE: Duration = Duration::from_secs(2);
/// Timeout of the runtime's shutdown, which may have to abandon blocking work.
pub(crate) const RUNTIME_SHUTDOWN: Duration = Duration::from_millis(50);

/// Runs an asynchronous command. An error is reported on one line, with the exit code `of_error`.
pub(crate) fn run(
    command: impl Future<Output = anyhow::Result<ExitCode>>,
    of_error: fn(&anyhow::Error) -> ExitCode,
) -> ExitCode {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let outcome = runtime
        .context("cannot start the runtime")
        .and_then(|runtime| {
            let outcome = runtime.block_on(command);
            runtime.shutdown_timeout(RUNTIME_SHUTDOWN);
            outcome
        });
    report(outcome, of_error)
}

/// Reports the result of a command. A broken pipe, as by `head`, is not a failure.
pub(crate) fn report(
    outcome: anyhow::Result<ExitCode>,
    of_error: fn(&anyhow::Error) -> ExitCode,
) -> ExitCode {
    let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    match outcome {
        Ok(code) => code,
        Err(error) if error.downcast_ref().is_some_and(is_broken) => ExitCode::SUCCESS,
        Err(error) => {
            note(&errors::message(&error));
            if let Some(failure) = error.downcast_ref::<LaunchFailure>() {
                excerpt(&failure.log);
            }
            of_error(&error)
        }
    }
}

/// The exit code for an error: 2 for an invalid URL, otherwise 1.
pub(crate) fn of_error(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref() {
        _ if error.is::<UnknownHost>() || error.is::<UnusedAccess>() => ExitCode::from(USAGE),
        Some(error) if is_malformed(error) => ExitCode::from(USAGE),
        _ => ExitCode::FAILURE,
    }
}

/// The exit code for an error of a command that uses a server: 2 for an invalid command line, 255
/// if the server is unreachable, otherwise 1.
pub(crate) fn of_remote_error(error: &anyhow::Error) -> ExitCode {
    match error.chain().find_map(|cause| cause.downcast_ref()) {
        _ if error.is::<LocationError>()
            || error.is::<UnknownHost>()
            || error.is::<UnusedAccess>() =>
        {
            ExitCode::from(USAGE)
        }
        Some(error) if is_malformed(error) => ExitCode::from(USAGE),
        Some(Error::Unreachable { .. } | Error::Disconnected { .. } | Error::TimedOut { .. }) => {
            ExitCode::from(UNREACHABLE)
        }
        _ => ExitCode::FAILURE,
    }
}

/// Reports an invalid command line.
pub(crate) fn misuse(message: &str) -> ExitCode {
    note(message);
    ExitCode::from(USAGE)
}

/// Returns whether a URL is invalid.
fn is_malformed(error: &Error) -> bool {
    matches!(error, Error::Unreachable { source, .. } if matches!(**source, DialError::Url(_)))
}

/// Reports a command that could not be started. The exit code is that of a shell.
pub(crate) fn not_started(program: &str, error: &Error) -> ExitCode {
    if let Error::StartFailed { kind, message, .. } = error {
        note(message);
        return ExitCode::from(start_code(*kind));
    }
    let message = errors::client_message(error);
    let (how, code) = match error {
        Error::NoDirectory => (" with --cwd", 1),
        // The server is reachable but doesn't support this.
        Error::Unsupported { .. } => ("", 1),
        _ => ("", UNREACHABLE),
    };
    note(&format!("cannot start {program}: {message}{how}"));
    ExitCode::from(code)
}

fn start_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::ProgramNotFound => 127,
        ErrorKind::ProgramNotExecutable => 126,
        _ => 1,
    }
}

/// The exit code for a signal to this program.
pub(crate) fn of_signal(signal: Signal) -> ExitCode {
    let number = match signal {
        Signal::Hangup => 1,
        Signal::Interrupt => 2,
        Signal::Quit => 3,
        _ => 15,
    };
    ExitCode::from(SIGNALLED + number)
}

/// The low eight bits of a process's exit code.
pub(crate) fn of_process(code: i32) -> ExitCode {
    ExitCode::from(code.to_le_bytes()[0])
}

/// Ends the process if necessary, and returns the exit code for an outcome.
pub(crate) async fn after(process: &Process, outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Exited(code) => of_process(code),
        Outcome::ExitedWithLeftovers(code) => {
            let tree = Terminate::new().grace(GRACE).tree();
            // Older servers end leftover processes with the session.
            let _ = process.terminate_with(tree).await;
            of_process(code)
        }
        Outcome::Detached => ExitCode::SUCCESS,
        Outcome::Failed(message) => {
            note(&message);
            ExitCode::from(UNREACHABLE)
        }
        Outcome::Killed(signal) => of_signal(signal),
        Outcome::Abandoned(signal) => {
            note("gave up: the server is unreachable");
            of_signal(signal)
        }
        Outcome::OutputError(error) => {
            let _ = process.terminate().await;
            if error.kind() == io::ErrorKind::BrokenPipe {
                // A closed pipe is not an error: the reader has seen enough.
                return ExitCode::from(BROKEN_PIPE);
            }
            note(&format!("cannot write the command's output: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_about_the_program_have_codes_of_their_own() {
        assert_eq!(start_code(ErrorKind::ProgramNotFound), 127);
        assert_eq!(start_code(ErrorKind::ProgramNotExecutable), 126);
        assert_eq!(start_code(ErrorKind::WorkingDirectory), 1);
        assert_eq!(start_code(ErrorKind::Overloaded), 1);
    }
}
