//! Diagnostics of an MCP server: why it ended, its last stderr line, skipped output.

use std::sync::{Arc, atomic::AtomicBool};

use parking_lot::Mutex;
use tokio::sync::watch;

/// Length limit of a quoted line in an error message, in characters.
const PREVIEW_CHARS: usize = 300;

/// Why a server's messages ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    /// The process exited.
    #[error("the server exited with code {code}{}", last_line(last_stderr.as_deref()))]
    Exited {
        /// The exit code; 128 + N if the process was killed by signal N.
        code: i32,
        /// The last line on stderr.
        last_stderr: Option<Arc<str>>,
    },
    /// The executor was lost, so the state of the server is unknown.
    #[error("{reason}")]
    Lost {
        /// The executor's error message.
        reason: Arc<str>,
    },
    /// The process is alive but accepts no input.
    #[error("the server closed its stdin")]
    StdinClosed,
    /// This side closed the transport.
    #[error("the connection was closed")]
    Closed,
}

fn last_line(line: Option<&str>) -> String {
    line.map_or_else(String::new, |line| format!("; last line on stderr: {line}"))
}

/// Diagnostics of one server. The transport writes them; the session uses them to
/// explain errors.
#[derive(Debug, Default)]
pub struct ServerDiagnostics {
    end_reason: watch::Sender<Option<EndReason>>,
    last_stderr: Mutex<Option<Arc<str>>>,
    skipped: Mutex<(u64, Option<Arc<str>>)>,
    /// Whether `server/discover` got no response in time.
    pub(crate) discovery_timed_out: AtomicBool,
}

impl ServerDiagnostics {
    /// Returns why the transport ended, or `None` while it works.
    #[must_use]
    pub fn end_reason(&self) -> Option<EndReason> {
        self.end_reason.borrow().clone()
    }

    /// Waits until the transport has ended. Cancel safe.
    pub async fn ended(&self) -> EndReason {
        let mut reason = self.end_reason.subscribe();
        // The wait can't fail: `self` holds the sender.
        let _ = reason.wait_for(Option::is_some).await;
        self.end_reason().unwrap_or(EndReason::Closed)
    }

    /// Returns the last line that the server wrote to stderr.
    #[must_use]
    pub fn last_stderr(&self) -> Option<Arc<str>> {
        self.last_stderr.lock().clone()
    }

    /// Returns the number of stdout lines that are not messages, and the first of them.
    #[must_use]
    pub fn skipped(&self) -> (u64, Option<Arc<str>>) {
        self.skipped.lock().clone()
    }

    /// Records why the server ended. The first recorded reason wins.
    pub(crate) fn set_end_reason(&self, reason: EndReason) {
        self.end_reason.send_if_modified(|known| {
            let first = known.is_none();
            if first {
                *known = Some(reason);
            }
            first
        });
    }

    pub(crate) fn record_stderr(&self, line: &[u8]) {
        *self.last_stderr.lock() = Some(preview(line));
    }

    pub(crate) fn record_skipped(&self, line: &[u8]) {
        let mut skipped = self.skipped.lock();
        skipped.0 += 1;
        skipped.1.get_or_insert_with(|| preview(line));
    }
}

/// Returns the beginning of untrusted text on one line, with control characters replaced.
pub(crate) fn preview(line: &[u8]) -> Arc<str> {
    shortened(line, PREVIEW_CHARS).into()
}

/// Returns at most `limit` characters of untrusted text, with control characters replaced.
pub(crate) fn shortened(text: &[u8], limit: usize) -> String {
    // A UTF-8 character has at most four bytes.
    let head = &text[..text.len().min(limit * 4)];
    let decoded = String::from_utf8_lossy(head);
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let mut shortened: String = decoded.chars().take(limit).map(printable).collect();
    if head.len() < text.len() || decoded.chars().nth(limit).is_some() {
        shortened.push('…');
    }
    shortened
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn first_end_reason_wins() {
        let diagnostics = ServerDiagnostics::default();
        assert_eq!(diagnostics.end_reason(), None);
        let last_stderr = Some("no such file".into());
        diagnostics.set_end_reason(EndReason::Exited {
            code: 3,
            last_stderr,
        });
        diagnostics.set_end_reason(EndReason::Closed);
        assert_eq!(
            diagnostics.ended().await.to_string(),
            "the server exited with code 3; last line on stderr: no such file"
        );
    }

    #[test]
    fn preview_is_one_bounded_line() {
        assert_eq!(&*preview(b"a\x1b[2J\tb\xff"), "a [2J b\u{fffd}");
        let long = preview("é".repeat(1000).as_bytes());
        assert_eq!(long.chars().count(), PREVIEW_CHARS + 1);
        assert!(long.ends_with('…'));
    }
}
