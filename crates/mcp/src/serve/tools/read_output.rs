//! The tool `read_output`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ProcessSnapshot, duration_in_range, size_in_range};
use crate::serve::{CallContext, Effect, Stream, Tool, ToolError, ToolServer, text};

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
    const NAME: &'static str = "read_output";
    const TITLE: &'static str = "Read a process's output";
    const DESCRIPTION: &'static str = "Returns the output of a process after a cursor, whether \
        the process is running, and its exit code if it isn't. Continue with the cursor in the \
        response. Reading consumes nothing: the same cursor returns the same output again. Use \
        wait_ms to wait for output instead of polling.";
    const EFFECT: Effect = Effect::ReadOnly;

    type Output = ProcessSnapshot;

    async fn call(
        self,
        server: &ToolServer,
        context: &CallContext,
    ) -> Result<ProcessSnapshot, ToolError> {
        let limits = server.limits();
        let range = (0, limits.wait_max);
        let wait = duration_in_range("wait_ms", self.wait_ms, Duration::ZERO, range)?;
        let max_output = size_in_range(
            "max_output_bytes",
            self.max_output_bytes,
            limits.output,
            limits.output_max,
        )?;
        let process = server.processes.find(&self.process_id)?;
        let (cursor, stream) = (self.cursor.unwrap_or(0), self.stream);
        let monitor = &process.monitor;
        let awaited = async {
            if self.wait_for == Some(WaitFor::Exit) {
                monitor.wait_exited(limits.drain).await;
            } else {
                monitor
                    .wait_until(|record| {
                        record.state.is_closed()
                            || record.log.segments(stream, cursor).next().is_some()
                    })
                    .await;
            }
        };
        let message = || text::state(&monitor.state(), monitor.duration());
        // A timeout is not an error: the response has the state of the process.
        let _ = context
            .run(wait, message, tokio::time::timeout(wait, awaited))
            .await?;
        Ok(ProcessSnapshot::take(&process, stream, cursor, max_output))
    }
}
