//! The tool `stop_process`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration_in_range;
use crate::serve::{CallContext, Effect, Tool, ToolError, ToolOutput, ToolServer, text};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopProcess {
    /// The id of the process.
    process_id: String,
    /// The grace period between SIGTERM and SIGKILL, in milliseconds; 0 kills at once.
    #[schemars(range(min = 0, max = 60000), extend("default" = 2000))]
    grace_ms: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Stopped {
    process_id: String,
    /// Whether the process was running.
    was_running: bool,
    /// The exit code: 128 + N if it was killed by signal N.
    exit_code: Option<i32>,
    /// How long the process ran.
    duration_ms: u64,
    /// The end of its output. Output before it can still be read with read_output.
    cursor: u64,
    #[serde(skip)]
    state: String,
}

impl Tool for StopProcess {
    const NAME: &'static str = "stop_process";
    const TITLE: &'static str = "Stop a process";
    const DESCRIPTION: &'static str = "Terminates a process and everything it started: sends \
        SIGTERM, kills after the grace period, and waits for the exit. If the process has exited, \
        this terminates the processes it left running. Its output remains readable.";
    const EFFECT: Effect = Effect::DestructiveIdempotent;

    type Output = Stopped;

    async fn call(self, server: &ToolServer, context: &CallContext) -> Result<Stopped, ToolError> {
        let limits = server.limits();
        let range = (0, limits.grace_max);
        let grace = duration_in_range("grace_ms", self.grace_ms, limits.grace, range)?;
        let process = server.processes.find(&self.process_id)?;
        let within = grace + limits.kill_wait;
        let message = || "waiting for the process to exit".to_owned();
        let termination = process.terminate(grace, limits);
        let was_running = context.run(within, message, termination).await??;
        let duration = process.monitor.duration();
        let record = process.monitor.lock();
        if record.state.is_running() {
            return Err(ToolError::NotTerminated {
                id: process.id.clone(),
                within,
            });
        }
        Ok(Stopped {
            process_id: process.id.clone(),
            was_running,
            exit_code: record.state.exit_code(),
            duration_ms: text::millis(duration),
            cursor: record.log.end(),
            state: text::state(&record.state, duration),
        })
    }
}

impl ToolOutput for Stopped {
    fn to_text(&self) -> String {
        let earlier = if self.was_running {
            ""
        } else {
            " had exited before"
        };
        format!("process {}{earlier}: {}", self.process_id, self.state)
    }
}
