//! `fs/readFile` and `fs/writeFile`: whole files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FsPath;
use crate::SandboxParams;
use crate::base64::{Base64Bytes, Base64Text, as_text};
use outpost_types::members::{default_true, is_true, or_true};

/// Params of `fs/readFile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadFileParams {
    /// The file.
    pub path: FsPath,
    /// Follows symbolic links in the path instead of rejecting them.
    #[serde(
        default = "default_true",
        deserialize_with = "or_true",
        skip_serializing_if = "is_true"
    )]
    pub follow_symlinks: bool,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Result of `fs/readFile`.
///
/// `B` holds the bytes, as in [`ReadResult`](crate::ReadResult).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>")
)]
pub struct FsReadFileResult<B = Vec<u8>> {
    /// The content.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub data_base64: B,
}

/// Params of `fs/writeFile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteFileParams {
    /// The file, which is created if it does not exist.
    pub path: FsPath,
    /// The new content.
    pub data_base64: Base64Text,
    /// Follows symbolic links in the path instead of rejecting them.
    #[serde(
        default = "default_true",
        deserialize_with = "or_true",
        skip_serializing_if = "is_true"
    )]
    pub follow_symlinks: bool,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}
