//! Exit codes, and the last words that go with them.

use std::{io, process::ExitCode, time::Duration};

use outpost_client::{DialError, Error, Process, SignalName, Terminate};
use rustix::io::Errno;

use crate::{
    console::Ending,
    render::{out::note, words},
    transfer::Senseless,
};

/// As everywhere: the command line itself is wrong.
const MISUSE: u8 = 2;
/// As a shell has it: there is no such program.
const NOT_FOUND: u8 = 127;
/// As a shell has it: there is, but it can't be executed.
const NOT_EXECUTABLE: u8 = 126;
/// As ssh has it: what was to be reached is out of reach.
const OUT_OF_REACH: u8 = 255;
/// What a tool was asked for it could not do.
const TOOL_FAILED: u8 = 3;
/// What a signal adds its number to.
const SIGNALLED: u8 = 128;
const SIGINT: u8 = 2;
const SIGPIPE: u8 = 13;

/// How long what a command has left running is asked to end.
const GRACE: Duration = Duration::from_secs(2);

/// Says what went wrong: exit code 1, 2 if the command line makes no sense, or 255 if
/// a server is out of reach.
pub(crate) fn with_error(error: &anyhow::Error) -> ExitCode {
    note(&words::of(error));
    let client = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Error>());
    if error.is::<Senseless>() {
        return ExitCode::from(MISUSE);
    }
    match client {
        Some(error) if is_malformed(error) => ExitCode::from(MISUSE),
        Some(Error::Unreachable { .. } | Error::Disconnected { .. } | Error::TimedOut { .. }) => {
            ExitCode::from(OUT_OF_REACH)
        }
        _ => ExitCode::FAILURE,
    }
}

/// The exit code for an error: 2 where an address makes no sense, otherwise 1.
pub(crate) fn of_error(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<Error>().is_some_and(is_malformed) {
        true => ExitCode::from(MISUSE),
        false => ExitCode::FAILURE,
    }
}

/// Says what is wrong with the command line.
pub(crate) fn misuse(words: &str) -> ExitCode {
    note(words);
    ExitCode::from(MISUSE)
}

/// Whether an address makes no sense.
fn is_malformed(error: &Error) -> bool {
    matches!(error, Error::Unreachable { source, .. } if matches!(**source, DialError::Url(_)))
}

/// A tool says that it has failed.
pub(crate) fn of_tool() -> ExitCode {
    ExitCode::from(TOOL_FAILED)
}

/// What was to be reached is lost for good.
pub(crate) fn out_of_reach(words: &str) -> ExitCode {
    note(words);
    beyond_reach()
}

/// The same, for who says so by other means.
pub(crate) fn beyond_reach() -> ExitCode {
    ExitCode::from(OUT_OF_REACH)
}

/// A command that could not be started, as a shell would tell it.
pub(crate) fn not_started(program: &str, error: &Error) -> ExitCode {
    let Error::StartFailed { message, .. } = error else {
        let words = words::of_client(error);
        let (how, code) = match error {
            Error::NoDirectory => (" with --cwd", 1),
            // It can't do that, and can be reached all the same.
            Error::NotAnnounced { .. } => ("", 1),
            _ => ("", OUT_OF_REACH),
        };
        note(&format!("cannot start {program}: {words}{how}"));
        return ExitCode::from(code);
    };
    note(message);
    ExitCode::from(of_start(message))
}

/// The wire carries the words of the system, and no number but theirs. Only those
/// about the program are told by codes of their own. Released servers say nothing
/// but those words; then they are taken to be about it where they can be.
fn of_start(message: &str) -> u8 {
    let is = |error: Errno| message.ends_with(&format!("(os error {})", error.raw_os_error()));
    let bare = |error: Errno| message == io::Error::from(error).to_string();
    if !message.starts_with("cannot execute ") {
        return match () {
            () if bare(Errno::NOENT) || bare(Errno::NOTDIR) => NOT_FOUND,
            () if bare(Errno::ACCESS) || bare(Errno::NOEXEC) => NOT_EXECUTABLE,
            () => 1,
        };
    }
    match is(Errno::NOENT) || is(Errno::NOTDIR) {
        true => NOT_FOUND,
        false => NOT_EXECUTABLE,
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

/// Whether this is the exit code of what an interrupt has ended.
pub(crate) fn is_of_interrupt(code: i32) -> bool {
    code == i32::from(SIGNALLED + SIGINT)
}

/// The lowest eight bits are all that fits, as for every program.
pub(crate) fn of_process(code: i32) -> ExitCode {
    ExitCode::from(code.to_le_bytes()[0])
}

/// After a conversation with a process, which ends with it unless it was left.
pub(crate) async fn after(process: &Process, ending: Ending) -> ExitCode {
    match ending {
        Ending::Exited(code) => of_process(code),
        Ending::Outlived(code) => {
            let what_is_left = Terminate {
                grace: Some(GRACE),
                tree: true,
            };
            // Older servers end it with the session.
            let _ = process.terminate_with(what_is_left).await;
            of_process(code)
        }
        Ending::Detached => ExitCode::SUCCESS,
        Ending::Failed(message) => {
            note(&message);
            ExitCode::from(OUT_OF_REACH)
        }
        Ending::Stopped(signal) => of_signal(signal),
        Ending::GivenUp(signal) => {
            note("gave up, since the server can't be reached");
            of_signal(signal)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_program_has_codes_of_its_own() {
        for (message, code) in [
            (
                r#"cannot execute "x": No such file or directory (os error 2)"#,
                127,
            ),
            (r#"cannot execute "x": Not a directory (os error 20)"#, 127),
            (
                r#"cannot execute "x": Permission denied (os error 13)"#,
                126,
            ),
            (r#"cannot execute "x": Exec format error (os error 8)"#, 126),
            (
                r#"cannot execute "x": Argument list too long (os error 7)"#,
                126,
            ),
            (
                r#"cannot execute "x": Too many levels of symbolic links (os error 40)"#,
                126,
            ),
            (
                r#"cannot execute "x": File name too long (os error 36)"#,
                126,
            ),
            ("No such file or directory (os error 2)", 127),
            ("Permission denied (os error 13)", 126),
            ("Cannot allocate memory (os error 12)", 1),
            ("Server overloaded; retry later.", 1),
            (
                r#"cannot enter directory "x": No such file or directory (os error 2)"#,
                1,
            ),
            (
                r#"cannot enter directory "x": Permission denied (os error 13)"#,
                1,
            ),
        ] {
            assert_eq!(of_start(message), code, "{message}");
        }
    }
}
