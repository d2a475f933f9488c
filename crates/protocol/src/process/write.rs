//! `process/write`: bytes for a process's stdin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Base64Bytes;
use crate::params::or_default;

/// Params of `process/write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WriteParams {
    /// Which process.
    pub process_id: String,
    /// The bytes; who only ends the input needs none.
    pub chunk: Option<Base64Bytes>,
    /// Makes a retry safe; absent for a write that is never retried.
    #[schemars(length(min = 1, max = 256))]
    pub write_id: Option<String>,
    /// End the input after the bytes.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub close_stdin: bool,
}

/// The answer to `process/write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteResult {
    /// What became of the bytes.
    pub status: WriteStatus,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum WriteStatus {
    /// Queued in order, now or when it was first sent.
    Accepted,
    /// There is no such process.
    UnknownProcess,
    /// The process takes no input, or no more.
    StdinClosed,
    /// The process doesn't exist yet.
    Starting,
}

crate::words::word!(WriteStatus);
