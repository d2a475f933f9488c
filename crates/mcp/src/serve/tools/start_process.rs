//! The tool `start_process`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{duration_in_range, in_range, max_output, process_io::ProcessSnapshot};
use crate::serve::{CallContext, StartRequest, Tool, ToolError};

const DEFAULT_ROWS: u16 = 24;
const DEFAULT_COLS: u16 = 80;

/// Starts a command that keeps running in the background, and returns its process_id and
/// first output. Follow it with read_output, write to it with write_input, and terminate it
/// with stop_process. Running processes are terminated when this session ends. For a command
/// that exits by itself, run_command is simpler.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartProcess {
    /// A shell command line. Give this or argv.
    command: Option<String>,
    /// A program with its arguments, started without a shell.
    argv: Option<Vec<String>>,
    /// The working directory, absolute or relative to the default one.
    cwd: Option<String>,
    /// Environment variables to set, in addition to the executor's environment.
    env: Option<BTreeMap<String, String>>,
    /// Run the process on a terminal, for programs that behave differently without one. The
    /// output then has escape sequences and echoes the input.
    tty: Option<bool>,
    /// The height of the terminal in lines.
    #[schemars(range(min = 1, max = 65535), extend("default" = 24))]
    rows: Option<u64>,
    /// The width of the terminal in characters.
    #[schemars(range(min = 1, max = 65535), extend("default" = 80))]
    cols: Option<u64>,
    /// How long to wait for the first output or the exit, in milliseconds.
    #[schemars(range(min = 0, max = 600000), extend("default" = 1000))]
    wait_ms: Option<u64>,
    /// The maximum size of output in the response, in bytes.
    #[schemars(range(min = 100, max = 200000), extend("default" = 20000))]
    max_output_bytes: Option<u64>,
}

impl Tool for StartProcess {
    type Output = ProcessSnapshot;

    async fn call(self, context: &CallContext<'_>) -> Result<ProcessSnapshot, ToolError> {
        let server = context.server;
        let limits = server.limits();
        let range = (0, limits.wait_max);
        let wait = duration_in_range("wait_ms", self.wait_ms, limits.first_output, range)?;
        let max_output = max_output(self.max_output_bytes, limits)?;
        let rows = in_range("rows", self.rows, DEFAULT_ROWS, 1..=u16::MAX)?;
        let cols = in_range("cols", self.cols, DEFAULT_COLS, 1..=u16::MAX)?;
        let request = StartRequest {
            command: self.command,
            argv: self.argv,
            cwd: self.cwd,
            env: self.env,
            tty: self.tty.unwrap_or(false).then_some((rows, cols)),
            stdin: true,
        };
        let process = server.start(request).await?;
        let first_output =
            process.wait_until(|record| record.log.end() > 0 || record.state.is_closed());
        let work = tokio::time::timeout(wait, first_output);
        let waited = context.run(wait, || "starting".to_owned(), work).await;
        if let Err(error) = waited {
            // The client never learns the id, so the process is of no use.
            if matches!(error, ToolError::Cancelled) {
                process.terminate(limits.grace, limits).await?;
            }
            server.processes.remove(&process);
            return Err(error);
        }
        Ok(ProcessSnapshot::take(&process, None, 0, max_output))
    }
}
