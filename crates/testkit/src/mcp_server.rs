//! Support for tests of MCP: a server with a cancellable tool, and a recorder of a server's input.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::deadline;

/// A server on the Python SDK, for `python -c`. Its tool `wait` runs until it is cancelled, and
/// `cancelled_request` returns the cancelled request. It also has `count`, `large`, `picture` and a
/// resource. With the argument `http` it listens on a free port.
pub const WAITING: &str = include_str!("mcp_server_waiting.py");

/// Forwards its input to a server and records it. `tee` ignores signals, to record the last
/// messages too.
const SCRIPT: &str = r#"(trap '' TERM HUP INT; exec tee "$0") | exec "$@""#;

/// Records the input of an MCP server.
#[derive(Debug)]
pub struct StdinRecorder {
    dir: TempDir,
}

impl StdinRecorder {
    /// Creates a recorder.
    pub fn new() -> Self {
        let dir = tempfile::tempdir();
        let dir = dir.unwrap_or_else(|error| panic!("cannot create a directory: {error}"));
        StdinRecorder { dir }
    }

    /// Wraps `command` so that its input is recorded.
    pub fn wrap(&self, command: &[String]) -> Vec<String> {
        let file = self.file().display().to_string();
        let before = ["sh".to_owned(), "-c".to_owned(), SCRIPT.to_owned(), file];
        before.iter().chain(command).cloned().collect()
    }

    /// Returns the complete messages so far.
    pub fn messages(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.file()).unwrap_or_default();
        // The last line may be incomplete.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .map(|line| {
                let message = serde_json::from_str(line);
                message.unwrap_or_else(|_| panic!("not a JSON message: {line}"))
            })
            .collect()
    }

    /// Counts messages with this method.
    pub fn count(&self, method: &str) -> usize {
        let messages = self.messages();
        messages.iter().filter(|m| m["method"] == method).count()
    }

    /// Waits for the only cancellation, which must concern a call of `tool`, and returns its
    /// request id.
    pub async fn cancelled_call(&self, tool: &str) -> Value {
        let cancelled = |m: &&Value| m["method"] == "notifications/cancelled";
        let messages = deadline::poll_until("a cancellation", || {
            Some(self.messages()).filter(|messages| messages.iter().any(|m| cancelled(&m)))
        })
        .await;
        let is_call = |m: &&Value| m["method"] == "tools/call" && m["params"]["name"] == tool;
        let calls: Vec<_> = messages.iter().filter(is_call).map(|m| &m["id"]).collect();
        let cancelled = messages.iter().filter(cancelled);
        let cancelled: Vec<_> = cancelled.map(|m| &m["params"]["requestId"]).collect();
        assert_eq!(cancelled.len(), 1, "{cancelled:?}");
        assert!(calls.contains(&cancelled[0]), "{cancelled:?} of {calls:?}");
        cancelled[0].clone()
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("stdin")
    }
}

impl Default for StdinRecorder {
    fn default() -> Self {
        Self::new()
    }
}
