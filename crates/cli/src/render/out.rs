//! Printing to stdout and stderr.

use std::io::{self, Write};

use serde::Serialize;

use super::visible::{visible, visible_json};

/// Prints lines to stdout, with text of others made visible.
pub(crate) fn lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> io::Result<()> {
    let lines = lines.into_iter();
    raw_lines(lines.map(|line| visible(line.as_ref()).into_owned()))
}

/// Prints lines to stdout as they are: lines of a [`Screen`](super::screen::Screen), whose text is
/// visible already, or data for programs.
pub(crate) fn raw_lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in lines {
        writeln!(stdout, "{}", line.as_ref())?;
    }
    stdout.flush()
}

/// Prints a value to stdout as JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(value)?;
    Ok(raw_lines([visible_json(&json)])?)
}

/// Prints a message to stderr on one line. Failures are ignored.
pub(crate) fn note(message: &str) {
    let _ = writeln!(io::stderr(), "{}", note_line(message));
}

/// Prints a message below the current line of a terminal.
pub(crate) fn note_below(message: &str) {
    let _ = writeln!(io::stderr(), "\n{}", note_line(message));
}

/// Prints an excerpt of a log to stderr, below a note.
pub(crate) fn excerpt(lines: &[String]) {
    for line in lines {
        let _ = writeln!(io::stderr(), "  {}", visible(line));
    }
}

/// The line of a message, with text of others made visible.
pub(crate) fn note_line(message: &str) -> String {
    format!("outpost: {}", visible(message))
}
