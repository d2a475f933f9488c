//! Printing to stdout and stderr.

use std::io::{self, Write};

use serde::Serialize;

/// Prints lines to stdout.
pub(crate) fn lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in lines {
        writeln!(stdout, "{}", line.as_ref())?;
    }
    stdout.flush()
}

/// Prints a value to stdout as JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(lines([serde_json::to_string_pretty(value)?])?)
}

/// Prints a message to stderr. Failures are ignored.
pub(crate) fn note(message: &str) {
    let _ = writeln!(io::stderr(), "outpost: {message}");
}

/// Prints a message below the current line of a terminal.
pub(crate) fn note_below(message: &str) {
    let _ = writeln!(io::stderr(), "\noutpost: {message}");
}
