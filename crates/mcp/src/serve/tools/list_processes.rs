//! The tool `list_processes`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::serve::{
    CallContext, Effect, Tool, ToolError, ToolOutput, ToolProcess, ToolServer, text,
};

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
    const NAME: &'static str = "list_processes";
    const TITLE: &'static str = "List processes";
    const DESCRIPTION: &'static str = "Lists the processes of this session: the running ones, and \
        the exited ones whose output can still be read.";
    const EFFECT: Effect = Effect::ReadOnly;

    type Output = ProcessList;

    async fn call(
        self,
        server: &ToolServer,
        _context: &CallContext,
    ) -> Result<ProcessList, ToolError> {
        let processes = server.processes.list();
        Ok(ProcessList {
            processes: processes.iter().map(|process| listed(process)).collect(),
        })
    }
}

fn listed(process: &ToolProcess) -> ListedProcess {
    let duration = process.monitor.duration();
    let record = process.monitor.lock();
    ListedProcess {
        process_id: process.id.clone(),
        command: process.command.clone(),
        running: record.state.is_running(),
        exit_code: record.state.exit_code(),
        tty: process.tty,
        duration_ms: text::millis(duration),
        output_bytes: record.log.end(),
        state: text::state(&record.state, duration),
    }
}

impl ToolOutput for ProcessList {
    fn to_text(&self) -> String {
        if self.processes.is_empty() {
            return "there are no processes".to_owned();
        }
        let mut text = String::new();
        for process in &self.processes {
            let _ = writeln!(
                text,
                "{}: {}, {} of output: {}",
                process.process_id,
                process.state,
                text::bytes(process.output_bytes),
                process.command,
            );
        }
        text
    }
}
