//! `process/signal`, `process/terminate`, `process/resize`, which overtake queued writes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Signal, TerminalSize};
use outpost_types::members::{object, or_default};

/// Params of `process/signal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalParams {
    /// The process.
    pub process_id: String,
    /// The signal for its process group.
    pub signal: Signal,
    /// The session of the process, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Params of `process/terminate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TerminateParams {
    /// The process.
    pub process_id: String,
    /// The grace period before it is killed; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Also terminates leftover processes of an exited process.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub tree: bool,
    /// The session of the process, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Result of `process/terminate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminateResult {
    /// Whether it was running and is now being terminated.
    pub running: bool,
}

/// Params of `process/resize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResizeParams {
    /// The process.
    pub process_id: String,
    /// The new size of its PTY.
    #[serde(deserialize_with = "object")]
    pub size: TerminalSize,
}
