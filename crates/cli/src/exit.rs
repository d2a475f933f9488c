//! Exit codes, and the last words that go with them.

use std::{io, process::ExitCode};

use outpost_client::{Error, Process, SignalName};
use rustix::io::Errno;

use crate::{console::Ending, render::out::note};

/// As a shell has it: there is no such program.
const NOT_FOUND: u8 = 127;
/// As a shell has it: there is, but it can't be executed.
const NOT_EXECUTABLE: u8 = 126;
/// As ssh has it: what was to be reached is out of reach.
const OUT_OF_REACH: u8 = 255;
/// What a signal adds its number to.
const SIGNALLED: u8 = 128;
const SIGINT: u8 = 2;
const SIGPIPE: u8 = 13;

/// Says what went wrong: exit code 1, or 255 if a server is out of reach.
pub(crate) fn with_error(error: &anyhow::Error) -> ExitCode {
    note(&format!("{error:#}"));
    let unreachable = error.downcast_ref::<Error>().is_some_and(|error| {
        matches!(
            error,
            Error::Unreachable { .. } | Error::Disconnected { .. } | Error::TimedOut { .. }
        )
    });
    if unreachable {
        ExitCode::from(OUT_OF_REACH)
    } else {
        ExitCode::FAILURE
    }
}

/// A command that could not be started, as a shell would tell it.
pub(crate) fn not_started(program: &str, error: &Error) -> ExitCode {
    let Error::StartFailed { message, .. } = error else {
        note(&format!("cannot start {program}: {error}"));
        return ExitCode::from(OUT_OF_REACH);
    };
    note(message);
    // The wire carries the words of the system, and no number but theirs.
    let is = |error: Errno| message.contains(&format!("(os error {})", error.raw_os_error()));
    if is(Errno::NOENT) || is(Errno::NOTDIR) {
        ExitCode::from(NOT_FOUND)
    } else if is(Errno::ACCESS) || is(Errno::NOEXEC) {
        ExitCode::from(NOT_EXECUTABLE)
    } else {
        ExitCode::FAILURE
    }
}

/// We were asked to end before there was anything to pass it on to.
pub(crate) fn of_signal(signal: SignalName) -> ExitCode {
    let number = match signal {
        SignalName::Hangup => 1,
        SignalName::Interrupt => SIGINT,
        SignalName::Quit => 3,
        _ => 15,
    };
    ExitCode::from(SIGNALLED + number)
}

/// After a conversation with a process, which ends with it unless it was left.
pub(crate) async fn after(process: &Process, ending: Ending) -> ExitCode {
    match ending {
        // The lowest eight bits are all that fits, as for every program.
        Ending::Exited(code) => ExitCode::from(code.to_le_bytes()[0]),
        Ending::Detached => ExitCode::SUCCESS,
        Ending::Failed(message) => {
            note(&message);
            ExitCode::from(OUT_OF_REACH)
        }
        Ending::GivenUp => {
            note("gave up, since the server can't be reached");
            ExitCode::from(SIGNALLED + SIGINT)
        }
        Ending::Unheard(error) => {
            let _ = process.terminate().await;
            if error.kind() == io::ErrorKind::BrokenPipe {
                // Who has read enough isn't told so.
                return ExitCode::from(SIGNALLED + SIGPIPE);
            }
            note(&format!("cannot write the command's output: {error}"));
            ExitCode::FAILURE
        }
    }
}
