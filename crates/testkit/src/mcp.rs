//! For tests of MCP servers: one to call off, and a way to listen to what one is told.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::patience;

/// A server on the SDK for Python, for that interpreter's `-c`. Its tool `wait` goes on until it
/// is called off, `who_was_called_off` tells the request that was; `count`, `large`, `picture` and a
/// resource are there besides. With the argument `http` it listens on a port that the system chose.
pub const WAITING: &str = include_str!("mcp/waiting.py");

/// Passes its input on to a server, and writes it down. A polite end isn't meant for what writes: it
/// is to see the last words as well.
const SCRIPT: &str = r#"(trap '' TERM HUP INT; exec tee "$0") | exec "$@""#;

/// Listens to what a server is told.
#[derive(Debug)]
pub struct Wiretap {
    folder: TempDir,
}

impl Wiretap {
    /// One that has heard nothing.
    pub fn new() -> Self {
        let folder = tempfile::tempdir();
        let folder = folder.unwrap_or_else(|error| panic!("no folder for a wiretap: {error}"));
        Wiretap { folder }
    }

    /// The same command, listened to.
    pub fn on(&self, command: &[String]) -> Vec<String> {
        let file = self.file().display().to_string();
        let before = ["sh".to_owned(), "-c".to_owned(), SCRIPT.to_owned(), file];
        before.iter().chain(command).cloned().collect()
    }

    /// All that the server was told so far.
    pub fn heard(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.file()).unwrap_or_default();
        // The last line may be on its way.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .map(|line| {
                let message = serde_json::from_str(line);
                message.unwrap_or_else(|_| panic!("told what is no message: {line}"))
            })
            .collect()
    }

    /// How often it was told this.
    pub fn count(&self, method: &str) -> usize {
        let heard = self.heard();
        heard.iter().filter(|m| m["method"] == method).count()
    }

    /// Waits until the server is told that a call of this tool is called off, and says which
    /// request that was: there has to be just the one.
    pub async fn called_off(&self, tool: &str) -> Value {
        let method = "notifications/cancelled";
        let heard = patience::seen("a call to be called off", || {
            let heard = self.heard();
            heard.iter().any(|m| m["method"] == method).then_some(heard)
        })
        .await;
        let calls: Vec<_> = heard
            .iter()
            .filter(|m| m["method"] == "tools/call" && m["params"]["name"] == tool)
            .map(|m| &m["id"])
            .collect();
        let off: Vec<_> = heard
            .iter()
            .filter(|m| m["method"] == method)
            .map(|m| &m["params"]["requestId"])
            .collect();
        assert_eq!(off.len(), 1, "{off:?}");
        assert!(calls.contains(&off[0]), "{off:?} of {calls:?}");
        off[0].clone()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("heard")
    }
}

impl Default for Wiretap {
    fn default() -> Self {
        Self::new()
    }
}
