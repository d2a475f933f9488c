//! `fs/createStream`, `fs/writeBlock`, `fs/commit`: a file is replaced in blocks, and all at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FsPath;
use crate::{Base64Bytes, SandboxParams};

/// Params of `fs/createStream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCreateStreamParams {
    /// The client's own key for what is being written.
    pub handle_id: String,
    /// Which file is replaced by the commit.
    pub path: FsPath,
    /// What the writing is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Params of `fs/writeBlock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteBlockParams {
    /// What is being written.
    pub handle_id: String,
    /// Where the block starts.
    pub offset: u64,
    /// Its bytes.
    pub chunk: Base64Bytes,
}

/// Params of `fs/commit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCommitParams {
    /// What takes the place of the file.
    pub handle_id: String,
}
