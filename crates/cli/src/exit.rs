//! Exit codes, and the last words that go with them.

use std::{io, process::ExitCode, time::Duration};

use outpost_client::{Error, Process, SignalName};
use rustix::io::Errno;

use crate::console::{Ending, Notice};

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

/// How long the runtime may take to let go of what can't be stopped.
const LET_GO: Duration = Duration::from_millis(50);

/// Runs a command that waits; problems are one line and exit code 1, or 255 if
/// a server is out of reach.
pub(crate) fn with_runtime(command: impl Future<Output = anyhow::Result<ExitCode>>) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            return with_error(&anyhow::Error::new(error).context("cannot start the runtime"));
        }
    };
    let code = runtime.block_on(command);
    runtime.shutdown_timeout(LET_GO);
    code.unwrap_or_else(|error| with_error(&error))
}

/// Says what went wrong.
pub(crate) fn with_error(error: &anyhow::Error) -> ExitCode {
    Notice::plain().say(&format!("{error:#}"));
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
    let notice = Notice::plain();
    let Error::StartFailed { message, .. } = error else {
        notice.say(&format!("cannot start {program}: {error}"));
        return ExitCode::from(OUT_OF_REACH);
    };
    notice.say(message);
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
    let notice = Notice::plain();
    match ending {
        // The lowest eight bits are all that fits, as for every program.
        Ending::Exited(code) => ExitCode::from(code.to_le_bytes()[0]),
        Ending::Detached => ExitCode::SUCCESS,
        Ending::Failed(message) => {
            notice.say(&message);
            ExitCode::from(OUT_OF_REACH)
        }
        Ending::GivenUp => {
            notice.say("gave up, since the server can't be reached");
            ExitCode::from(SIGNALLED + SIGINT)
        }
        Ending::Unheard(error) => {
            let _ = process.terminate().await;
            if error.kind() == io::ErrorKind::BrokenPipe {
                // Who has read enough isn't told so.
                return ExitCode::from(SIGNALLED + SIGPIPE);
            }
            notice.say(&format!("cannot write the command's output: {error}"));
            ExitCode::FAILURE
        }
    }
}
