//! The tools `send_signal`, `resize_terminal`, `stop_process` and `list_processes`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::IntoDeserializer as _};

use super::{duration_in_range, in_range};
use crate::serve::{CallContext, Tool, ToolError, ToolProcess, text};

/// Sends a signal to a running process and its process group: INT is Ctrl-C, HUP makes many
/// servers reload their configuration. To terminate a process with everything it started, use
/// stop_process.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendSignal {
    /// The id of the process.
    process_id: String,
    /// The signal.
    #[serde(deserialize_with = "parse_signal")]
    signal: Signal,
}

/// Accepts `SIGINT` and `int` as well as `INT`.
fn parse_signal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Signal, D::Error> {
    let name = String::deserialize(deserializer)?.to_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    Signal::deserialize(name.into_deserializer())
}

// No doc comment: it would become part of the tool's schema.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Signal {
    Int,
    Term,
    Kill,
    Hup,
    Quit,
    Stop,
    Cont,
    Usr1,
    Usr2,
    Winch,
}

impl From<Signal> for outpost_client::Signal {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Int => outpost_client::Signal::Interrupt,
            Signal::Term => outpost_client::Signal::Terminate,
            Signal::Kill => outpost_client::Signal::Kill,
            Signal::Hup => outpost_client::Signal::Hangup,
            Signal::Quit => outpost_client::Signal::Quit,
            Signal::Stop => outpost_client::Signal::Stop,
            Signal::Cont => outpost_client::Signal::Continue,
            Signal::Usr1 => outpost_client::Signal::User1,
            Signal::Usr2 => outpost_client::Signal::User2,
            Signal::Winch => outpost_client::Signal::WindowChange,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Sent {
    process_id: String,
    signal: Signal,
}

impl Tool for SendSignal {
    type Output = Sent;

    async fn call(self, context: &CallContext<'_>) -> Result<Sent, ToolError> {
        let SendSignal { process_id, signal } = self;
        let process = context.server.processes.find_running(&process_id)?;
        process.handle.signal(signal.into()).await?;
        Ok(Sent { process_id, signal })
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signal = format!("{:?}", self.signal).to_uppercase();
        write!(f, "sent {signal} to process {}", self.process_id)
    }
}

/// Resizes the terminal of a process that was started with "tty": true.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResizeTerminal {
    /// The id of the process.
    process_id: String,
    /// The height in lines.
    #[schemars(range(min = 1))]
    rows: u16,
    /// The width in characters.
    #[schemars(range(min = 1))]
    cols: u16,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Resized {
    process_id: String,
    rows: u16,
    cols: u16,
}

impl Tool for ResizeTerminal {
    type Output = Resized;

    async fn call(self, context: &CallContext<'_>) -> Result<Resized, ToolError> {
        let processes = &context.server.processes;
        let (process_id, rows, cols) = (self.process_id, self.rows, self.cols);
        for (name, value) in [("rows", rows), ("cols", cols)] {
            in_range(name, Some(value.into()), 0, 1..=u16::MAX)?;
        }
        if !processes.find(&process_id)?.tty {
            return Err(ToolError::NoTerminal { id: process_id });
        }
        let process = processes.find_running(&process_id)?;
        process.handle.resize(rows, cols).await?;
        Ok(Resized {
            process_id,
            rows,
            cols,
        })
    }
}

impl fmt::Display for Resized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the terminal of process {} has {} lines of {} characters",
            self.process_id, self.rows, self.cols
        )
    }
}

/// Terminates a process and everything it started: sends SIGTERM, kills after the grace
/// period, and waits for the exit. If the process has exited, this terminates the processes
/// it left running. Its output remains readable.
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
    type Output = Stopped;

    async fn call(self, context: &CallContext<'_>) -> Result<Stopped, ToolError> {
        let limits = context.server.limits();
        let range = (0, limits.grace_max);
        let grace = duration_in_range("grace_ms", self.grace_ms, limits.grace, range)?;
        let process = context.server.processes.find(&self.process_id)?;
        let within = grace + limits.kill_wait;
        let message = || "waiting for the process to exit".to_owned();
        let termination = process.terminate(grace, limits);
        let was_running = context.run(within, message, termination).await??;
        let process_id = self.process_id;
        let record = process.record();
        if record.is_running() {
            let id = process_id;
            return Err(ToolError::NotTerminated { id, within });
        }
        Ok(Stopped {
            process_id,
            was_running,
            exit_code: record.state.exit_code(),
            duration_ms: text::millis(record.duration()),
            cursor: record.log.end(),
            state: record.to_string(),
        })
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let earlier = if self.was_running {
            ""
        } else {
            " had exited before"
        };
        write!(f, "process {}{earlier}: {}", self.process_id, self.state)
    }
}

/// Lists the processes of this session: the running ones, and the exited ones whose output
/// can still be read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListProcesses {}

#[derive(Serialize, JsonSchema)]
pub(super) struct ProcessList {
    /// The processes, oldest first.
    processes: Vec<ListedProcess>,
}

#[derive(Serialize, JsonSchema)]
struct ListedProcess {
    process_id: String,
    /// The command, shortened.
    command: String,
    running: bool,
    exit_code: Option<i32>,
    /// Whether the process has a terminal.
    tty: bool,
    /// How long the process has run, until its exit.
    duration_ms: u64,
    /// The size of its output; as a cursor, this is the end of its output.
    output_bytes: u64,
    #[serde(skip)]
    state: String,
}

impl Tool for ListProcesses {
    type Output = ProcessList;

    async fn call(self, context: &CallContext<'_>) -> Result<ProcessList, ToolError> {
        let processes = context.server.processes.list();
        let processes = processes.iter().map(|process| ListedProcess::new(process));
        Ok(ProcessList {
            processes: processes.collect(),
        })
    }
}

impl ListedProcess {
    fn new(process: &ToolProcess) -> Self {
        let record = process.record();
        ListedProcess {
            process_id: process.id.clone(),
            command: process.command.clone(),
            running: record.is_running(),
            exit_code: record.state.exit_code(),
            tty: process.tty,
            duration_ms: text::millis(record.duration()),
            output_bytes: record.log.end(),
            state: record.to_string(),
        }
    }
}

impl fmt::Display for ProcessList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.processes.is_empty() {
            return f.write_str("there are no processes");
        }
        for process in &self.processes {
            let output = text::bytes(process.output_bytes);
            let (id, state) = (&process.process_id, &process.state);
            writeln!(f, "{id}: {state}, {output} of output: {}", process.command)?;
        }
        Ok(())
    }
}
