//! `process/read`: retained output is asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::exit_code;
use crate::StreamName;
use crate::base64::{Base64Bytes, as_text};

/// Params of `process/read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    /// Which process.
    pub process_id: String,
    /// Only what has a higher number; absent for everything retained.
    pub after_seq: Option<u64>,
    /// How many bytes to answer with, but at least one chunk.
    pub max_bytes: Option<u64>,
    /// How long to wait when there is nothing to say.
    pub wait_ms: Option<u64>,
    /// The session it is in, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The answer to `process/read`.
///
/// `B` is whatever holds the bytes of a chunk: anything that is `AsRef<[u8]>` can be written without
/// a copy, anything that is `From<Vec<u8>>` can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>")
)]
pub struct ReadResult<B = Vec<u8>> {
    /// In the order of their numbers.
    pub chunks: Vec<ReadChunk<B>>,
    /// One less than this is the next `after_seq`.
    pub next_seq: u64,
    /// Whether the process has ended.
    pub exited: bool,
    /// How it ended.
    #[serde(default, deserialize_with = "exit_code::any_or_none")]
    pub exit_code: Option<i32>,
    /// Whether nothing will follow.
    pub closed: bool,
    /// What went wrong with the process other than how it ended.
    pub failure: Option<String>,
    /// Whether it seems to have failed because of its sandbox. Older servers don't say.
    #[serde(default)]
    pub sandbox_denied: bool,
}

/// One event of output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>"))]
pub struct ReadChunk<B = Vec<u8>> {
    /// Its number.
    pub seq: u64,
    /// Where it was written.
    pub stream: StreamName,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub chunk: B,
}
