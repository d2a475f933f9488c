//! Diagnostics of an MCP server: why it ended, its last stderr line, skipped output.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::watch;

/// Length limit of a quoted line in an error message.
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
/// explain errors. Clones share the data.
#[derive(Clone, Debug)]
pub struct ServerDiagnostics {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    end_reason: watch::Sender<Option<EndReason>>,
    last_stderr: Mutex<Option<Arc<str>>>,
    skipped: AtomicU64,
    first_skipped: Mutex<Option<Arc<str>>>,
    discovery_timed_out: AtomicBool,
}

impl ServerDiagnostics {
    pub(crate) fn new() -> Self {
        ServerDiagnostics {
            shared: Arc::new(Shared {
                end_reason: watch::Sender::new(None),
                last_stderr: Mutex::new(None),
                skipped: AtomicU64::new(0),
                first_skipped: Mutex::new(None),
                discovery_timed_out: AtomicBool::new(false),
            }),
        }
    }

    /// Returns why the server ended, or `None` while it is alive.
    #[must_use]
    pub fn end_reason(&self) -> Option<EndReason> {
        self.shared.end_reason.borrow().clone()
    }

    /// Waits until the server has ended. Cancel safe.
    pub async fn ended(&self) -> EndReason {
        let mut reason = self.shared.end_reason.subscribe();
        // The wait can't fail: `self` holds the sender.
        let ended = reason.wait_for(Option::is_some).await;
        ended
            .ok()
            .and_then(|reason| reason.clone())
            .unwrap_or(EndReason::Closed)
    }

    /// Returns the last line that the server wrote to stderr.
    #[must_use]
    pub fn last_stderr(&self) -> Option<Arc<str>> {
        self.shared.last_stderr.lock().clone()
    }

    /// Returns the number of stdout lines that are not messages, and the first of them.
    #[must_use]
    pub fn skipped(&self) -> (u64, Option<Arc<str>>) {
        let count = self.shared.skipped.load(Ordering::Relaxed);
        (count, self.shared.first_skipped.lock().clone())
    }

    /// Reports whether `server/discover` got no response in time.
    pub(crate) fn discovery_timed_out(&self) -> bool {
        self.shared.discovery_timed_out.load(Ordering::Relaxed)
    }

    pub(crate) fn set_discovery_timed_out(&self) {
        self.shared
            .discovery_timed_out
            .store(true, Ordering::Relaxed);
    }

    /// Records why the server ended. The first recorded reason wins.
    pub(crate) fn set_end_reason(&self, reason: EndReason) {
        self.shared.end_reason.send_if_modified(|known| {
            let first = known.is_none();
            if first {
                *known = Some(reason);
            }
            first
        });
    }

    pub(crate) fn record_stderr(&self, line: &[u8]) {
        *self.shared.last_stderr.lock() = Some(preview(line));
    }

    pub(crate) fn record_skipped(&self, line: &[u8]) {
        if self.shared.skipped.fetch_add(1, Ordering::Relaxed) == 0 {
            *self.shared.first_skipped.lock() = Some(preview(line));
        }
    }
}

/// Returns the beginning of untrusted text on one line, with control characters replaced.
pub(crate) fn preview(line: &[u8]) -> Arc<str> {
    // A UTF-8 character has at most four bytes.
    let head = &line[..line.len().min(PREVIEW_CHARS * 4)];
    let text = String::from_utf8_lossy(head);
    let mut preview: String = text
        .chars()
        .take(PREVIEW_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if head.len() < line.len() || text.chars().nth(PREVIEW_CHARS).is_some() {
        preview.push('…');
    }
    preview.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn first_end_reason_wins() {
        let diagnostics = ServerDiagnostics::new();
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
