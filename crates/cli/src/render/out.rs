//! Printing to stdout and stderr.

use std::io::{self, Write};

use serde::Serialize;

use super::visible::{visible, visible_json};

/// Prints to stdout. An error says so, and stays a broken pipe.
fn print<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>, end: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let print = || {
        for item in items {
            stdout.write_all(item.as_ref())?;
            stdout.write_all(end)?;
        }
        stdout.flush()
    };
    print().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::BrokenPipe => error,
        kind => io::Error::new(kind, format!("cannot write to stdout: {error}")),
    })
}

/// A line as bytes.
struct Line<S>(S);

impl<S: AsRef<str>> AsRef<[u8]> for Line<S> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref().as_bytes()
    }
}

/// Prints lines to stdout, with text of others made visible.
pub(crate) fn lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> io::Result<()> {
    let lines = lines.into_iter();
    raw_lines(lines.map(|line| visible(line.as_ref()).into_owned()))
}

/// Prints lines to stdout as they are: lines of a [`Screen`](super::screen::Screen), whose text is
/// visible already, or data for programs.
pub(crate) fn raw_lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> io::Result<()> {
    print(lines.into_iter().map(Line), b"\n")
}

/// Prints data for programs to stdout, with a null character behind each item.
pub(crate) fn null_terminated<T: AsRef<[u8]>>(
    items: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    print(items, b"\0")
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
