//! `fs/createStream`, `fs/writeBlock`, `fs/commit`: writes a file in blocks, and replaces it
//! atomically.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FsPath;
use crate::{Base64Bytes, SandboxParams};

/// Params of `fs/createStream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCreateStreamParams {
    /// The id of the stream, chosen by the client.
    pub handle_id: String,
    /// The file that the commit replaces.
    pub path: FsPath,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Params of `fs/writeBlock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteBlockParams {
    /// The stream.
    pub handle_id: String,
    /// The offset of the block.
    pub offset: u64,
    /// The bytes.
    pub chunk: Base64Bytes,
}

/// Params of `fs/commit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCommitParams {
    /// The stream.
    pub handle_id: String,
}
