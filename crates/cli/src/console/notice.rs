//! Messages to the user next to the output of a process.

use std::io::Write;

use outpost_client::{ConnectionState, RemoteExecutor};

use super::RawMode;
use crate::render::out::{note, note_line};

/// Writes lines to stderr that suit the terminal's mode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    /// In raw mode, a newline doesn't return to the first column.
    raw: bool,
    /// Hint that tells how to stop waiting for a connection.
    escape_key: Option<&'static str>,
    /// Whether changes of the connection are reported elsewhere.
    ignores_connection: bool,
}

impl Notice {
    /// Messages next to a terminal that may be in raw mode.
    pub(crate) fn next_to(raw_mode: Option<&RawMode>, escape_key: Option<&'static str>) -> Self {
        Notice {
            raw: raw_mode.is_some_and(RawMode::is_raw),
            escape_key,
            ignores_connection: false,
        }
    }

    /// Messages of a process whose connection is reported elsewhere.
    pub(crate) fn without_connection() -> Self {
        Notice {
            raw: false,
            escape_key: None,
            ignores_connection: true,
        }
    }

    pub(crate) fn print(self, text: &str) {
        if self.raw {
            // A failed write to stderr can't be reported.
            let _ = write!(std::io::stderr(), "\r\n{}\r\n", note_line(text));
        } else {
            note(text);
        }
    }

    /// Reports each change of the connection, for as long as it is polled.
    pub(crate) async fn follow(self, remote: Option<&RemoteExecutor>) {
        let Some(remote) = remote.filter(|_| !self.ignores_connection) else {
            return std::future::pending::<()>().await;
        };
        let mut state = remote.connection_state();
        // Report a connection that was lost before this call.
        state.mark_changed();
        let escape_key = self.escape_key;
        let escape_key = escape_key.map_or(String::new(), |key| format!(" ({key})"));
        let mut before = ConnectionState::Connected;
        while state.changed().await.is_ok() {
            let now = state.borrow_and_update().clone();
            match &now {
                now if *now == before => {}
                ConnectionState::Unresponsive => {
                    self.print(&format!("the server does not answer, waiting…{escape_key}"));
                }
                ConnectionState::Recovering => {
                    self.print(&format!("connection lost, reconnecting…{escape_key}"));
                }
                ConnectionState::Connected => self.print("connected again"),
                // The process fails with the same message.
                ConnectionState::Failed { .. } => {}
            }
            before = now;
        }
        std::future::pending::<()>().await;
    }
}
