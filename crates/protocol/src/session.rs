//! `session/list` and `session/close`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ProcessEntry;

/// Params of `session/close`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCloseParams {
    /// The session to close, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Result of `session/list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionListResult {
    /// All sessions, oldest first.
    pub sessions: Vec<SessionEntry>,
}

/// Describes a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// The session id, which authorizes the owner to resume it.
    pub session_id: String,
    /// The name for people.
    pub label: Option<String>,
    /// Whether a connection is attached.
    pub attached: bool,
    /// The time of its creation, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// The time when it expires, in milliseconds since 1970; absent while a connection is attached
    /// and for a session without expiry.
    pub expires_at_ms: Option<u64>,
    /// Its processes.
    pub processes: Vec<ProcessEntry>,
}
