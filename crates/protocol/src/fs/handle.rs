//! `fs/open`, `fs/readBlock`, `fs/close`: reading through an open handle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FsPath;
use crate::SandboxParams;
use crate::base64::{Base64Bytes, as_text};
use outpost_types::members::negative_as_zero;

/// Params of `fs/open`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsOpenParams {
    /// The id of the handle, chosen by the client.
    pub handle_id: String,
    /// The file.
    pub path: FsPath,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Result of `fs/open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsOpenResult {
    /// The id from the request.
    pub handle_id: String,
}

/// Params of `fs/readBlock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadBlockParams {
    /// The handle.
    pub handle_id: String,
    /// The offset of the block.
    pub offset: u64,
    /// The length of the block. It is shorter at the end of the file.
    #[serde(deserialize_with = "negative_as_zero")]
    pub len: u64,
}

/// Result of `fs/readBlock`.
///
/// `B` holds the bytes, as in [`ReadResult`](crate::ReadResult).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>"))]
pub struct FsReadBlockResult<B = Vec<u8>> {
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub chunk: B,
    /// Whether the block is shorter than requested.
    pub eof: bool,
}

/// Params of `fs/close`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCloseParams {
    /// The handle of an open file or of a stream.
    pub handle_id: String,
}
