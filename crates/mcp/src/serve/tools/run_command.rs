//! The tool `run_command`.

use std::{collections::BTreeMap, convert::Infallible, fmt::Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{duration_in_range, size_in_range};
use crate::serve::{
    CallContext, Effect, OutputSummary, ProcessState, Stream, Tool, ToolError, ToolOutput,
    ToolProcess, ToolServer, text,
};

/// The exit code of a command that timed out, as of `timeout(1)`.
const TIMED_OUT: i32 = 124;
/// Length limit of a command in a list.
const SUMMARY_CHARS: usize = 200;

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
    const NAME: &'static str = "run_command";
    const TITLE: &'static str = "Run a command";
    const DESCRIPTION: &'static str = "Runs a command, waits for its exit, and returns its exit \
        code, stdout and stderr. A command that fails is not a tool error: check exit_code. Use it \
        for everything that exits by itself: builds, tests, searches, git. Each call starts a new \
        shell, so give cwd instead of using `cd`. For servers, watchers and interactive programs, \
        use start_process.";
    const EFFECT: Effect = Effect::OpenWorld;

    type Output = CommandResult;

    async fn call(
        self,
        server: &ToolServer,
        context: &CallContext,
    ) -> Result<CommandResult, ToolError> {
        let limits = server.limits();
        let range = (1, limits.run_max);
        let time_limit = duration_in_range("timeout_ms", self.timeout_ms, limits.run, range)?;
        let max_output = size_in_range(
            "max_output_bytes",
            self.max_output_bytes,
            limits.output,
            limits.output_max,
        )?;
        let line = CommandLine::new(self.command, self.argv, self.cwd, self.env)?;
        let process = server.start(line, None, self.stdin.is_some()).await?;
        let monitor = &process.monitor;
        let exit = async {
            let exited = monitor.wait_until(|record| !record.state.is_running());
            let timed_out = timeout(time_limit, exited).await.is_err();
            if !timed_out {
                // Draining the output doesn't count against the timeout.
                monitor.wait_exited(limits.drain).await;
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
    let duration = process.monitor.duration();
    let record = process.monitor.lock();
    let written = record.log.total(None);
    let summary = OutputSummary::read(&record.log, None, 400);
    drop(record);
    let mut message = format!(
        "running for {}, {}",
        text::time(duration),
        text::bytes(written)
    );
    let end = match summary.gap {
        Some(_) => &summary.tail,
        None => &summary.head,
    };
    if let Some(line) = text::last_line(end) {
        let _ = write!(message, ": {line}");
    }
    message
}

impl CommandResult {
    fn new(process: &ToolProcess, timed_out: bool, max_output: usize, merged: bool) -> Self {
        let duration = process.monitor.duration();
        let record = process.monitor.lock();
        let state = match (record.state.clone(), timed_out) {
            (ProcessState::Exited(_), true) => ProcessState::Exited(TIMED_OUT),
            (ProcessState::Closed(_), true) => ProcessState::Closed(TIMED_OUT),
            (state, _) => state,
        };
        let summary = |stream| OutputSummary::read(&record.log, stream, max_output);
        let (stdout, stderr) = if merged {
            (summary(None), None)
        } else {
            let stderr = summary(Some(Stream::Stderr));
            (summary(Some(Stream::Stdout)), Some(stderr))
        };
        drop(record);
        let is_truncated = |output: &OutputSummary| output.gap.is_some();
        let truncated = is_truncated(&stdout) || stderr.as_ref().is_some_and(is_truncated);
        let left_running = matches!(state, ProcessState::Exited(_));
        let stdout = text::summary(&stdout, &process.id, (!merged).then_some("stdout"));
        let stderr = stderr.map(|stderr| text::summary(&stderr, &process.id, Some("stderr")));
        CommandResult {
            exit_code: state.exit_code(),
            timed_out,
            duration_ms: text::millis(duration),
            stdout,
            stderr: stderr.unwrap_or_default(),
            truncated,
            left_running,
            process_id: (truncated || left_running).then(|| process.id.clone()),
            state: text::state(&state, duration),
            lost: state.lost_reason(),
        }
    }
}

impl ToolOutput for CommandResult {
    fn to_text(&self) -> String {
        let mut text = self.state.clone();
        if self.timed_out {
            text.push_str(match self.lost {
                None => "; it timed out and was terminated",
                Some(_) => "; it timed out, and it is unknown whether it was terminated",
            });
        }
        if self.left_running
            && let Some(id) = &self.process_id
        {
            let _ = write!(
                text,
                " (terminate it with stop_process {{\"process_id\": \"{id}\"}})"
            );
        }
        if self.stdout.is_empty() && self.stderr.is_empty() {
            text.push_str("; no output");
        }
        text.push_str(&text::section("stdout", &self.stdout));
        text.push_str(&text::section("stderr", &self.stderr));
        text
    }
}

/// A command with its working directory and environment.
#[derive(Debug)]
pub(in crate::serve) struct CommandLine {
    program: Program,
    pub(in crate::serve) cwd: Option<String>,
    pub(in crate::serve) env: BTreeMap<String, String>,
}

#[derive(Debug)]
enum Program {
    Shell(String),
    Argv(Vec<String>),
}

impl CommandLine {
    /// Builds a command from a tool's arguments.
    pub(super) fn new(
        command: Option<String>,
        argv: Option<Vec<String>>,
        cwd: Option<String>,
        env: Option<BTreeMap<String, String>>,
    ) -> Result<Self, ToolError> {
        let program = match (command, argv) {
            (Some(line), None) => Program::Shell(line),
            (None, Some(argv)) if argv.is_empty() => return Err(ToolError::EmptyArgv),
            (None, Some(argv)) => Program::Argv(argv),
            (None, None) => return Err(ToolError::NoCommand),
            (Some(_), Some(_)) => return Err(ToolError::TwoCommands),
        };
        Ok(CommandLine {
            program,
            cwd,
            env: env.unwrap_or_default(),
        })
    }

    /// Returns the program and its arguments.
    pub(in crate::serve) fn argv(&self, shell: &str) -> Vec<String> {
        match &self.program {
            Program::Shell(line) => vec![shell.to_owned(), "-c".to_owned(), line.clone()],
            Program::Argv(argv) => argv.clone(),
        }
    }

    /// Returns the command on one line, shortened.
    pub(in crate::serve) fn summary(&self) -> String {
        let command = match &self.program {
            Program::Shell(line) => line.clone(),
            Program::Argv(argv) => argv.join(" "),
        };
        let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(SUMMARY_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: Option<&str>, argv: Option<&[&str]>) -> Result<CommandLine, ToolError> {
        let argv = argv.map(|argv| argv.iter().map(|&arg| arg.to_owned()).collect());
        CommandLine::new(line.map(str::to_owned), argv, None, None)
    }

    #[test]
    fn command_is_either_a_line_or_argv() {
        let line = command(Some("ls | wc"), None).unwrap();
        assert_eq!(line.argv("/bin/bash"), ["/bin/bash", "-c", "ls | wc"]);
        let program = command(None, Some(&["ls", "a b"])).unwrap();
        assert_eq!(program.argv("/bin/bash"), ["ls", "a b"]);
        assert!(matches!(command(None, None), Err(ToolError::NoCommand)));
        assert!(matches!(
            command(None, Some(&[])),
            Err(ToolError::EmptyArgv)
        ));
        let both = command(Some("ls"), Some(&["ls"]));
        assert!(matches!(both, Err(ToolError::TwoCommands)));
    }

    #[test]
    fn summary_is_one_short_line() {
        let script = command(Some("cd x &&\n  make"), None).unwrap();
        assert_eq!(script.summary(), "cd x && make");
        let long = command(Some(&"ä".repeat(1000)), None).unwrap();
        assert_eq!(long.summary().chars().count(), SUMMARY_CHARS + 1);
    }
}
