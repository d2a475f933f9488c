//! Entries of a process list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PathUri, ProcessState};

/// Describes one process of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessEntry {
    /// The id that the client chose.
    pub process_id: String,
    /// The PID, once the process runs.
    pub pid: Option<u32>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory at the start.
    pub cwd: PathUri,
    /// Whether it runs on a PTY.
    pub tty: bool,
    /// The time of the start, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// The phase it is in.
    pub state: ProcessState,
    /// The exit code, once it has exited.
    pub exit_code: Option<i32>,
    /// The number of its next event.
    pub next_seq: u64,
    /// The number of output bytes so far.
    pub bytes_out: u64,
}
