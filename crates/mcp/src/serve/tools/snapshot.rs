//! The state of a process and a page of its output: the result of several tools.

use schemars::JsonSchema;
use serde::Serialize;

use crate::serve::{OutputPage, Stream, ToolOutput, ToolProcess, text};

// No doc comment: it would become part of the tools' schemas.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProcessSnapshot {
    /// The id for later calls.
    process_id: String,
    /// Whether the process has not exited yet.
    running: bool,
    /// The exit code, once it has exited: 128 + N if it was killed by signal N.
    exit_code: Option<i32>,
    /// The output after the cursor: stdout and stderr in the order of arrival, unless a stream
    /// was selected.
    output: String,
    /// The cursor for the next read_output.
    cursor: u64,
    /// Whether more output is available now: it exceeds the limit of the response, or follows
    /// output that was dropped.
    more: bool,
    /// The number of bytes between the cursor and this output that were dropped because too much
    /// was written since. The output itself is contiguous.
    missed_bytes: u64,
    /// Why the state of the process is unknown, if it is.
    lost: Option<String>,
    /// How long the process has run, until its exit.
    duration_ms: u64,
    #[serde(skip)]
    state: String,
}

impl ProcessSnapshot {
    pub(super) fn take(
        process: &ToolProcess,
        stream: Option<Stream>,
        cursor: u64,
        limit: usize,
    ) -> Self {
        let duration = process.monitor.duration();
        let record = process.monitor.lock();
        let state = record.state.clone();
        let page = OutputPage::read(&record.log, stream, cursor, limit, state.is_closed());
        drop(record);
        ProcessSnapshot {
            process_id: process.id.clone(),
            running: state.is_running(),
            exit_code: state.exit_code(),
            output: text::decode(&page.bytes),
            cursor: page.next,
            more: page.more,
            missed_bytes: page.missed,
            duration_ms: text::millis(duration),
            state: text::state(&state, duration),
            lost: state.lost_reason(),
        }
    }
}

impl ToolOutput for ProcessSnapshot {
    fn to_text(&self) -> String {
        let mut text = format!("process {}: {}", self.process_id, self.state);
        if self.missed_bytes > 0 {
            let missed = text::bytes(self.missed_bytes);
            text.push_str(&format!("; {missed} before this output were dropped"));
        }
        if self.more {
            text.push_str(&format!(
                "; there is more, continue at cursor {}",
                self.cursor
            ));
        } else if self.running {
            text.push_str(&format!(
                "; further output starts at cursor {}",
                self.cursor
            ));
        }
        text.push_str(&text::section("output", &self.output));
        text
    }
}
