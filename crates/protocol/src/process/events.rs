//! `process/output`, `process/exited`, `process/closed`: what a process's client is told.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::exit_code;
use crate::base64::{Base64Bytes, as_text};

/// Params of `process/output`.
///
/// The server sends these through [`OutputFrame`](crate::OutputFrame), which gives the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessOutput<'a> {
    /// Which process.
    pub process_id: Cow<'a, str>,
    /// Its number among the events of the process.
    pub seq: u64,
    /// Where it was written.
    pub stream: StreamName,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub chunk: Cow<'a, [u8]>,
}

/// Params of `process/exited`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessExited {
    /// Which process.
    pub process_id: String,
    /// Its number among the events of the process.
    pub seq: u64,
    /// How it ended.
    pub exit_code: i32,
    /// Whether it seems to have failed because of its sandbox.
    pub sandbox_denied: bool,
}

/// Params of `process/exited` as a client reads them: older servers say less.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    /// Which process.
    pub process_id: String,
    /// Its number among the events of the process.
    pub seq: u64,
    /// How it ended.
    #[serde(deserialize_with = "exit_code::any")]
    pub exit_code: i32,
    /// Whether it seems to have failed because of its sandbox, if the server says so here.
    pub sandbox_denied: Option<bool>,
}

/// Params of `process/closed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessClosed {
    /// Which process.
    pub process_id: String,
    /// Its number among the events of the process, the last one.
    pub seq: u64,
}

/// Where output was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum StreamName {
    /// File descriptor 1.
    Stdout,
    /// File descriptor 2.
    Stderr,
    /// The terminal, where the two can't be told apart.
    Pty,
}

crate::words::word!(StreamName);

impl StreamName {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Pty => "pty",
        }
    }
}
