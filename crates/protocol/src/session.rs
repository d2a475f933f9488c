//! `session/list` and `session/close`: what there is on this server, and its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ProcessEntry;

/// Params of `session/close`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCloseParams {
    /// Which one, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The answer to `session/list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionListResult {
    /// All sessions, oldest first.
    pub sessions: Vec<SessionEntry>,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// Its key: who has it can resume the session, and the owner may.
    pub session_id: String,
    /// Its name for people.
    pub label: Option<String>,
    /// Whether a connection has it.
    pub attached: bool,
    /// When it was made, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// When it ends unless somebody attaches; absent while somebody is, or
    /// when it stays until it is closed.
    pub expires_at_ms: Option<u64>,
    /// What it runs.
    pub processes: Vec<ProcessEntry>,
}
