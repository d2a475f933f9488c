//! Where it is printed, and what it means when nobody reads it.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use super::words;
use crate::exit;

/// Prints lines to stdout.
pub(crate) fn lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in lines {
        writeln!(stdout, "{}", line.as_ref())?;
    }
    stdout.flush()
}

/// How many characters fit a line of stdout, where that is a terminal.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Says something beside the output. Who doesn't listen to that misses nothing.
pub(crate) fn note(words: &str) {
    let _ = writeln!(io::stderr(), "outpost: {words}");
}

/// The same beside a terminal whose cursor may stand anywhere.
pub(crate) fn note_below(words: &str) {
    let _ = writeln!(io::stderr(), "\noutpost: {words}");
}

/// The end of a command. A reader that has seen enough, as `head` does, is no
/// failure.
pub(crate) fn conclude(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note(&words::of(&error));
            exit::of_error(&error)
        }
    }
}

/// Whether somebody has stopped reading what we write.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref::<io::Error>().is_some_and(broken)
}
