//! `fs/readFile` and `fs/writeFile`: whole files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FsPath;
use crate::SandboxParams;
use crate::base64::{Base64Bytes, Base64Text, as_text};
use crate::params::{is_true, or_true, yes};

/// Params of `fs/readFile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadFileParams {
    /// Which file.
    pub path: FsPath,
    /// Whether the path may have symbolic links in it.
    #[serde(
        default = "yes",
        deserialize_with = "or_true",
        skip_serializing_if = "is_true"
    )]
    pub follow_symlinks: bool,
    /// What the reading is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// The answer to `fs/readFile`.
///
/// `B` is whatever holds the bytes, as in [`ReadResult`](crate::ReadResult).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>")
)]
pub struct FsReadFileResult<B = Vec<u8>> {
    /// All of its bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub data_base64: B,
}

/// Params of `fs/writeFile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteFileParams {
    /// Which file; it is made if there is none.
    pub path: FsPath,
    /// What is in it afterwards.
    pub data_base64: Base64Text,
    /// Whether the path may have symbolic links in it.
    #[serde(
        default = "yes",
        deserialize_with = "or_true",
        skip_serializing_if = "is_true"
    )]
    pub follow_symlinks: bool,
    /// What the writing is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}
