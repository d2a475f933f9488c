//! `process/list`: what there is in this session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PathUri;

/// The answer to `process/list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListResult {
    /// All that are not evicted.
    pub processes: Vec<ProcessEntry>,
}

/// One process of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessEntry {
    /// The client's own key.
    pub process_id: String,
    /// The OS's, once there is one.
    pub pid: Option<u32>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it was started.
    pub cwd: PathUri,
    /// Whether it is on a PTY.
    pub tty: bool,
    /// When it was started, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// How far it has come.
    pub state: ProcessState,
    /// How it ended.
    pub exit_code: Option<i32>,
    /// The number its next event will get.
    pub next_seq: u64,
    /// How many bytes it has written.
    pub bytes_out: u64,
}

/// How far a process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum ProcessState {
    /// It doesn't exist yet.
    Starting,
    /// It runs.
    Running,
    /// It has ended; somebody may still write to its streams.
    Exited,
    /// Its streams have ended too.
    Closed,
}

crate::words::word!(ProcessState);
