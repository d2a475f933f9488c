//! `process/read`: reads retained output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lenient_exit_code;
use crate::Stream;
use crate::base64::{Base64Bytes, as_text};

/// Params of `process/read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    /// The process.
    pub process_id: String,
    /// Returns only events with a higher number; absent for all retained output.
    pub after_seq: Option<u64>,
    /// The limit of the result, in bytes. At least one chunk is returned.
    pub max_bytes: Option<u64>,
    /// The time to wait if there is nothing to return.
    pub wait_ms: Option<u64>,
    /// The session of the process, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Result of `process/read`.
///
/// `B` holds the bytes of a chunk: `AsRef<[u8]>` to serialize without a copy, `From<Vec<u8>>` to
/// deserialize.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>")
)]
pub struct ReadResult<B = Vec<u8>> {
    /// The output, in order.
    pub chunks: Vec<ReadChunk<B>>,
    /// The next event number; the next `after_seq` is one less.
    pub next_seq: u64,
    /// Whether the process has exited.
    pub exited: bool,
    /// The exit code.
    #[serde(default, deserialize_with = "lenient_exit_code::deserialize_option")]
    pub exit_code: Option<i32>,
    /// Whether no event follows.
    pub closed: bool,
    /// A failure other than the exit code.
    pub failure: Option<String>,
    /// Whether the sandbox seems to have caused a failure. Older servers don't send it.
    #[serde(default)]
    pub sandbox_denied: bool,
}

/// One output event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>"))]
pub struct ReadChunk<B = Vec<u8>> {
    /// The event number.
    pub seq: u64,
    /// The stream it was written to.
    pub stream: Stream,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub chunk: B,
}
