//! `fs/open`, `fs/readBlock`, `fs/close`: a file that stays open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FsPath;
use crate::SandboxParams;
use crate::base64::{Base64Bytes, as_text};
use crate::params::at_least_zero;

/// Params of `fs/open`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsOpenParams {
    /// The client's own key for the open file.
    pub handle_id: String,
    /// Which file.
    pub path: FsPath,
    /// What the reading is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// The answer to `fs/open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsOpenResult {
    /// As it was asked for.
    pub handle_id: String,
}

/// Params of `fs/readBlock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadBlockParams {
    /// Which open file.
    pub handle_id: String,
    /// Where the block starts.
    pub offset: u64,
    /// How many bytes it has, if there are so many.
    #[serde(deserialize_with = "at_least_zero")]
    pub len: u64,
}

/// The answer to `fs/readBlock`.
///
/// `B` is whatever holds the bytes, as in [`ReadResult`](crate::ReadResult).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>"))]
pub struct FsReadBlockResult<B = Vec<u8>> {
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub chunk: B,
    /// Whether there were fewer than were asked for.
    pub eof: bool,
}

/// Params of `fs/close`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCloseParams {
    /// Which open file, or which file that is being replaced.
    pub handle_id: String,
}
