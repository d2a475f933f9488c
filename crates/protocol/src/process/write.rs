//! `process/write`: writes to a process's stdin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Base64Bytes, WriteStatus};
use outpost_types::members::or_default;

/// Params of `process/write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WriteParams {
    /// The process.
    pub process_id: String,
    /// The bytes; absent to only close stdin.
    pub chunk: Option<Base64Bytes>,
    /// An idempotency key for retries; absent for a write that is never retried.
    #[schemars(length(min = 1, max = 256))]
    pub write_id: Option<String>,
    /// Closes stdin after the bytes.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub close_stdin: bool,
}

/// Result of `process/write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteResult {
    /// The outcome.
    pub status: WriteStatus,
}
