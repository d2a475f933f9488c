//! Printing to stdout and stderr.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use super::errors;
use crate::exit;

/// Prints lines to stdout.
pub(crate) fn lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in lines {
        writeln!(stdout, "{}", line.as_ref())?;
    }
    stdout.flush()
}

/// The width of the terminal on stdout, if it is one.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Prints a message to stderr. Failures are ignored.
pub(crate) fn note(message: &str) {
    let _ = writeln!(io::stderr(), "outpost: {message}");
}

/// Prints a message below the current line of a terminal.
pub(crate) fn note_below(message: &str) {
    let _ = writeln!(io::stderr(), "\noutpost: {message}");
}

/// Reports the result of a command. A broken pipe, as by `head`, is not a failure.
pub(crate) fn finish(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note(&errors::message(&error));
            exit::of_error(&error)
        }
    }
}

/// Returns whether the reader of our output has closed it.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref::<io::Error>().is_some_and(broken)
}
