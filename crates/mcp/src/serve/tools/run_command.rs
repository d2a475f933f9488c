//! The tool `run_command`.

use std::{collections::BTreeMap, convert::Infallible, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{duration_in_range, max_output};
use crate::serve::{
    CallContext, OutputExcerpt, ProcessState, StartRequest, Stream, Tool, ToolError, ToolProcess,
    output_log::last_bytes, text,
};

/// The exit code of a command that timed out, as of `timeout(1)`.
const TIMED_OUT: i32 = 124;
/// The output that is searched for the last line, for progress notifications.
const LAST_BYTES: usize = 200;

/// Runs a command, waits for its exit, and returns its exit code, stdout and stderr. A
/// command that fails is not a tool error: check exit_code. Use it for everything that exits
/// by itself: builds, tests, searches, git. Each call starts a new shell, so give cwd instead
/// of using `cd`. For servers, watchers and interactive programs, use start_process.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunCommand {
    /// A shell command line, with pipes, redirections or several lines. Give this or argv.
    command: Option<String>,
    /// A program with its arguments, started without a shell, so that nothing needs quoting.
    argv: Option<Vec<String>>,
    /// The working directory, absolute or relative to the default one.
    cwd: Option<String>,
    /// Environment variables to set, in addition to the executor's environment.
    env: Option<BTreeMap<String, String>>,
    /// The input on stdin; empty if not given.
    stdin: Option<String>,
    /// The timeout in milliseconds. After it, the command and everything it started are
    /// terminated, and the response has the output so far.
    #[schemars(range(min = 1, max = 86400000), extend("default" = 120000))]
    timeout_ms: Option<u64>,
    /// The maximum size of stdout and of stderr in the response, in bytes each. The beginning
    /// and the end are kept.
    #[schemars(range(min = 100, max = 200000), extend("default" = 20000))]
    max_output_bytes: Option<u64>,
    /// Merge stderr into stdout, in the order of arrival.
    merge_stderr: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CommandResult {
    /// The exit code: 128 + N if it was killed by signal N, 124 after a timeout. Anything but 0
    /// usually means failure. Null if unknown.
    exit_code: Option<i32>,
    /// Whether the command was terminated because of the timeout.
    timed_out: bool,
    /// How long the command ran.
    duration_ms: u64,
    /// The output on stdout, or on both streams if they were merged.
    stdout: String,
    /// The output on stderr.
    stderr: String,
    /// Whether a part of the output was omitted; a line in it says how to read that part.
    truncated: bool,
    /// Whether a process that the command started is still running and holds its output open.
    /// Terminate it with stop_process.
    left_running: bool,
    /// The id for read_output or stop_process, if there is something left to read or to stop.
    process_id: Option<String>,
    /// Why the state of the command is unknown, if it is.
    lost: Option<String>,
    #[serde(skip)]
    state: String,
}

impl Tool for RunCommand {
    type Output = CommandResult;

    async fn call(self, context: &CallContext<'_>) -> Result<CommandResult, ToolError> {
        let server = context.server;
        let limits = server.limits();
        let range = (1, limits.run_timeout_max);
        let time_limit =
            duration_in_range("timeout_ms", self.timeout_ms, limits.run_timeout, range)?;
        let max_output = max_output(self.max_output_bytes, limits)?;
        let request = StartRequest {
            command: self.command,
            argv: self.argv,
            cwd: self.cwd,
            env: self.env,
            tty: None,
            stdin: self.stdin.is_some(),
        };
        let process = server.start(request).await?;
        let exit = async {
            let exited = process.wait_until(|record| !record.is_running());
            let timed_out = timeout(time_limit, exited).await.is_err();
            if !timed_out {
                // Draining the output doesn't count against the timeout.
                process.wait_exited(limits.drain).await;
            }
            timed_out
        };
        let work = async {
            tokio::select! {
                timed_out = exit => timed_out,
                never = write_stdin(&process, self.stdin) => match never {},
            }
        };
        let timed_out = match context.run(time_limit, || progress(&process), work).await {
            Ok(timed_out) => timed_out,
            Err(error) => {
                if matches!(error, ToolError::Cancelled) {
                    // Fails only if the executor is lost.
                    let _ = process.terminate(limits.grace, limits).await;
                }
                server.processes.remove(&process);
                return Err(error);
            }
        };
        let terminated = if timed_out {
            process.terminate(limits.grace, limits).await.map(|_| ())
        } else {
            Ok(())
        };
        let merged = self.merge_stderr.unwrap_or(false);
        let mut result = CommandResult::new(&process, timed_out, max_output, merged);
        if let Err(error) = terminated {
            // The output so far is still useful.
            result.process_id = Some(process.id.clone());
            result.lost.get_or_insert_with(|| error.to_string());
        }
        if result.process_id.is_none() {
            server.processes.remove(&process);
        }
        Ok(result)
    }
}

/// Writes the input and closes stdin. Ignores a process that doesn't read it.
async fn write_stdin(process: &ToolProcess, stdin: Option<String>) -> Infallible {
    if let Some(stdin) = stdin
        && process.handle.write(stdin).await.is_ok()
    {
        let _ = process.handle.close_stdin().await;
    }
    std::future::pending().await
}

/// Returns the message of a progress notification.
fn progress(process: &ToolProcess) -> String {
    let record = process.record();
    let (time, written) = (text::time(record.duration()), text::bytes(record.log.end()));
    match text::last_line(&last_bytes(&record.log, None, LAST_BYTES)) {
        Some(line) => format!("running for {time}, {written}: {line}"),
        None => format!("running for {time}, {written}"),
    }
}

impl CommandResult {
    fn new(process: &ToolProcess, timed_out: bool, max_output: usize, merged: bool) -> Self {
        let record = process.record();
        let state = match (record.state.clone(), timed_out) {
            (ProcessState::Exited(_), true) => ProcessState::Exited(TIMED_OUT),
            (ProcessState::Closed(_), true) => ProcessState::Closed(TIMED_OUT),
            (state, _) => state,
        };
        let mut truncated = false;
        let mut output = |stream, name| {
            let summary = OutputExcerpt::read(&record.log, stream, max_output);
            truncated |= summary.gap.is_some();
            text::summary(&summary, &process.id, name)
        };
        let (stdout, stderr) = if merged {
            (output(None, None), String::new())
        } else {
            let stdout = output(Some(Stream::Stdout), Some("stdout"));
            (stdout, output(Some(Stream::Stderr), Some("stderr")))
        };
        let left_running = matches!(state, ProcessState::Exited(_));
        CommandResult {
            exit_code: state.exit_code(),
            timed_out,
            duration_ms: text::millis(record.duration()),
            stdout,
            stderr,
            truncated,
            left_running,
            process_id: (truncated || left_running).then(|| process.id.clone()),
            lost: state.lost_reason(),
            state: text::state(&state, record.duration()),
        }
    }
}

impl fmt::Display for CommandResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.state)?;
        if self.timed_out {
            f.write_str(match self.lost {
                None => "; it timed out and was terminated",
                Some(_) => "; it timed out, and it is unknown whether it was terminated",
            })?;
        }
        if self.left_running
            && let Some(id) = &self.process_id
        {
            write!(
                f,
                " (terminate it with stop_process {{\"process_id\": \"{id}\"}})"
            )?;
        }
        if self.stdout.is_empty() && self.stderr.is_empty() {
            f.write_str("; no output")?;
        }
        f.write_str(&text::section("stdout", &self.stdout))?;
        f.write_str(&text::section("stderr", &self.stderr))
    }
}
