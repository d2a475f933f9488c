//! The tools `read_output` and `write_input`, and the snapshot of a process.

use std::{fmt, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{duration_in_range, max_output};
use crate::serve::{
    CallContext, OutputPage, ProcessRecord, Stream, Tool, ToolError, ToolProcess, text,
};

// The state of a process and a page of its output. No doc comment: it would become part of the
// tools' schemas.
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
        let record = process.record();
        let complete = record.state.is_closed();
        let page = OutputPage::read(&record.log, stream, cursor, limit, complete);
        ProcessSnapshot {
            process_id: process.id.clone(),
            running: record.is_running(),
            exit_code: record.state.exit_code(),
            output: text::decode(&page.bytes),
            cursor: page.next,
            more: page.more,
            missed_bytes: page.missed,
            lost: record.state.lost_reason(),
            duration_ms: text::millis(record.duration()),
            state: record.to_string(),
        }
    }
}

impl fmt::Display for ProcessSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}: {}", self.process_id, self.state)?;
        if self.missed_bytes > 0 {
            let missed = text::bytes(self.missed_bytes);
            write!(f, "; {missed} before this output were dropped")?;
        }
        if self.more {
            write!(f, "; there is more, continue at cursor {}", self.cursor)?;
        } else if self.running {
            write!(f, "; further output starts at cursor {}", self.cursor)?;
        }
        f.write_str(&text::section("output", &self.output))
    }
}

/// Returns the output of a process after a cursor, whether the process is running, and its
/// exit code if it isn't. Continue with the cursor in the response. Reading consumes nothing:
/// the same cursor returns the same output again. Use wait_ms to wait for output instead of
/// polling.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadOutput {
    /// The id of the process.
    process_id: String,
    /// Where to start: the cursor of the previous response. The beginning if not given.
    #[schemars(range(min = 0), extend("default" = 0))]
    cursor: Option<u64>,
    /// How long to wait if there is nothing to read yet, in milliseconds.
    #[schemars(range(min = 0, max = 600000), extend("default" = 0))]
    wait_ms: Option<u64>,
    /// The event to wait for: output after the cursor, which is the default, or the exit.
    wait_for: Option<WaitFor>,
    /// Read only one stream, instead of both in the order of arrival. Cursors are the same for
    /// all streams.
    stream: Option<Stream>,
    /// The maximum size of output in the response, in bytes.
    #[schemars(range(min = 100, max = 200000), extend("default" = 20000))]
    max_output_bytes: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WaitFor {
    Output,
    Exit,
}

impl Tool for ReadOutput {
    type Output = ProcessSnapshot;

    async fn call(self, context: &CallContext<'_>) -> Result<ProcessSnapshot, ToolError> {
        let limits = context.server.limits();
        let range = (0, limits.wait_max);
        let wait = duration_in_range("wait_ms", self.wait_ms, Duration::ZERO, range)?;
        let max_output = max_output(self.max_output_bytes, limits)?;
        let process = context.server.processes.find(&self.process_id)?;
        let (cursor, stream) = (self.cursor.unwrap_or(0), self.stream);
        let has_output = |record: &ProcessRecord| {
            record.state.is_closed() || record.log.segments(stream, cursor).next().is_some()
        };
        let awaited = async {
            match self.wait_for {
                Some(WaitFor::Exit) => process.wait_exited(limits.drain).await,
                Some(WaitFor::Output) | None => process.wait_until(has_output).await,
            }
        };
        let message = || process.record().to_string();
        // A timeout is not an error: the response has the state of the process.
        let _ = context.run(wait, message, timeout(wait, awaited)).await?;
        Ok(ProcessSnapshot::take(&process, stream, cursor, max_output))
    }
}

/// Writes to the stdin or terminal of a process that was started with start_process, and can
/// close its input. To see its reaction, call read_output with wait_ms and the cursor in the
/// response.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteInput {
    /// The id of the process.
    process_id: String,
    /// The exact text to write: a line needs its "\n"; on a terminal, control characters are
    /// keys ("\u0003" is Ctrl-C, "\u001b[A" the key up).
    text: Option<String>,
    /// Close the input afterwards, like Ctrl-D.
    end_input: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Written {
    process_id: String,
    /// The number of bytes accepted.
    written_bytes: u64,
    /// The end of its output before the write. Output after this cursor followed the input.
    cursor: u64,
    /// Whether the input was closed.
    input_ended: bool,
}

impl Tool for WriteInput {
    type Output = Written;

    async fn call(self, context: &CallContext<'_>) -> Result<Written, ToolError> {
        let process = context.server.processes.find_running(&self.process_id)?;
        let cursor = process.record().log.end();
        let text = self.text.unwrap_or_default();
        let written_bytes = text.len() as u64;
        let input_ended = self.end_input.unwrap_or(false);
        let work = async {
            process.handle.write(text).await?;
            if input_ended {
                process.handle.close_stdin().await?;
            }
            Ok::<_, outpost_client::Error>(())
        };
        let message = || "waiting for the process to read its input".to_owned();
        let within = context.server.limits().wait_max;
        let writing = context.run(within, message, timeout(within, work)).await?;
        let process_id = self.process_id;
        let Ok(written) = writing else {
            let id = process_id;
            return Err(ToolError::NotRead { id, within });
        };
        written?;
        Ok(Written {
            process_id,
            written_bytes,
            cursor,
            input_ended,
        })
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let closed = if self.input_ended {
            " and closed its input"
        } else {
            ""
        };
        write!(
            f,
            "wrote {} to process {}{closed}; its reaction starts at cursor {}",
            text::bytes(self.written_bytes),
            self.process_id,
            self.cursor,
        )
    }
}
