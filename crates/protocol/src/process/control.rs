//! `process/signal`, `process/terminate`, `process/resize`: what overtakes queued writes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Size;
use crate::params::{object, or_default};

/// Params of `process/signal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalParams {
    /// Which process.
    pub process_id: String,
    /// What its whole group gets.
    pub signal: SignalName,
    /// The session it is in, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Signals, in words that mean the same on every host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum SignalName {
    /// SIGINT, the one that released servers know too.
    Interrupt,
    /// SIGTERM
    Terminate,
    /// SIGKILL
    Kill,
    /// SIGHUP
    Hangup,
    /// SIGQUIT
    Quit,
    /// SIGSTOP
    Stop,
    /// SIGCONT
    Continue,
    /// SIGUSR1
    User1,
    /// SIGUSR2
    User2,
    /// SIGWINCH
    WindowChange,
}

crate::words::word!(SignalName);

/// Params of `process/terminate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TerminateParams {
    /// Which process.
    pub process_id: String,
    /// How long it is asked to end before it is made to; absent for not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Also end what an exited process left running.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub tree: bool,
    /// The session it is in, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The answer to `process/terminate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminateResult {
    /// Whether it was running, and is now being ended.
    pub running: bool,
}

/// Params of `process/resize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResizeParams {
    /// Which process.
    pub process_id: String,
    /// The new size of its PTY.
    #[serde(deserialize_with = "object")]
    pub size: Size,
}
