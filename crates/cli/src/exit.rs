//! Exit codes and final messages.

use std::{io, process::ExitCode, time::Duration};

use outpost_client::{DialError, Error, ErrorKind, Process, Signal, Terminate};

use crate::{
    console::Outcome,
    render::{errors, out::note},
    transfer::LocationError,
};

/// Invalid command line.
const USAGE: u8 = 2;
/// Program not found, as in a shell.
const NOT_FOUND: u8 = 127;
/// Program not executable, as in a shell.
const NOT_EXECUTABLE: u8 = 126;
/// Server unreachable, as with ssh.
const UNREACHABLE: u8 = 255;
/// An MCP tool reported an error.
const TOOL_FAILED: u8 = 3;
/// Base of the exit code of a process that a signal ended.
const SIGNALLED: u8 = 128;
const SIGINT: u8 = 2;
const SIGPIPE: u8 = 13;

/// Grace period of leftover processes.
const GRACE: Duration = Duration::from_secs(2);

/// Reports an error. Exit code 2 for an invalid command line, 255 if a server is unreachable,
/// otherwise 1.
pub(crate) fn with_error(error: &anyhow::Error) -> ExitCode {
    note(&errors::message(error));
    let client = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Error>());
    if error.is::<LocationError>() {
        return ExitCode::from(USAGE);
    }
    match client {
        Some(error) if is_malformed(error) => ExitCode::from(USAGE),
        Some(Error::Unreachable { .. } | Error::Disconnected { .. } | Error::TimedOut { .. }) => {
            ExitCode::from(UNREACHABLE)
        }
        _ => ExitCode::FAILURE,
    }
}

/// The exit code for an error: 2 for an invalid URL, otherwise 1.
pub(crate) fn of_error(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<Error>().is_some_and(is_malformed) {
        ExitCode::from(USAGE)
    } else {
        ExitCode::FAILURE
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

/// The exit code for a tool that reported an error.
pub(crate) fn of_tool() -> ExitCode {
    ExitCode::from(TOOL_FAILED)
}

/// Reports that a server is unreachable.
pub(crate) fn unreachable(message: &str) -> ExitCode {
    note(message);
    unreachable_code()
}

/// The exit code for an unreachable server.
pub(crate) fn unreachable_code() -> ExitCode {
    ExitCode::from(UNREACHABLE)
}

/// Reports a command that could not be started. The exit code is that of a shell.
pub(crate) fn not_started(program: &str, error: &Error) -> ExitCode {
    let Error::StartFailed { kind, message, .. } = error else {
        let message = errors::client_message(error);
        let (how, code) = match error {
            Error::NoDirectory => (" with --cwd", 1),
            // The server is reachable but doesn't support this.
            Error::Unsupported { .. } => ("", 1),
            _ => ("", UNREACHABLE),
        };
        note(&format!("cannot start {program}: {message}{how}"));
        return ExitCode::from(code);
    };
    note(message);
    ExitCode::from(start_code(*kind))
}

fn start_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::ProgramNotFound => NOT_FOUND,
        ErrorKind::ProgramNotExecutable => NOT_EXECUTABLE,
        _ => 1,
    }
}

/// The exit code for a signal to this program.
pub(crate) fn of_signal(signal: Signal) -> ExitCode {
    let number = match signal {
        Signal::Hangup => 1,
        Signal::Interrupt => SIGINT,
        Signal::Quit => 3,
        _ => 15,
    };
    ExitCode::from(SIGNALLED + number)
}

/// Returns whether this is the exit code of a process that SIGINT ended.
pub(crate) fn is_interrupted(code: i32) -> bool {
    code == i32::from(SIGNALLED + SIGINT)
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
                return ExitCode::from(SIGNALLED + SIGPIPE);
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
