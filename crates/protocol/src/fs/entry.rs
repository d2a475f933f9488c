//! `fs/getMetadata`, `fs/canonicalize`, `fs/remove`, `fs/copy`: what a path leads to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FsPath;
use crate::params::{is_true, or_default, or_true, yes};
use crate::{PathUri, SandboxParams};

/// Params of `fs/getMetadata`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsGetMetadataParams {
    /// Of what.
    pub path: FsPath,
    /// Whether the path may have symbolic links in it.
    #[serde(
        default = "yes",
        deserialize_with = "or_true",
        skip_serializing_if = "is_true"
    )]
    pub follow_symlinks: bool,
    /// What the looking is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// The answer to `fs/getMetadata`: what a link leads to, where it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsGetMetadataResult {
    /// A folder.
    pub is_directory: bool,
    /// A regular file.
    pub is_file: bool,
    /// The path itself is a link.
    pub is_symlink: bool,
    /// In bytes.
    pub size: u64,
    /// Since 1970; 0 where the file system doesn't know.
    pub created_at_ms: i64,
    /// Since 1970.
    pub modified_at_ms: i64,
}

/// Params of `fs/canonicalize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCanonicalizeParams {
    /// What to find.
    pub path: FsPath,
    /// What the looking is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// The answer to `fs/canonicalize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsCanonicalizeResult {
    /// The same, without any link in it.
    pub path: PathUri,
}

/// Params of `fs/remove`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsRemoveParams {
    /// What to remove.
    pub path: FsPath,
    /// With everything below it.
    #[serde(default = "yes", deserialize_with = "or_true")]
    pub recursive: bool,
    /// What isn't there counts as removed.
    #[serde(default = "yes", deserialize_with = "or_true")]
    pub force: bool,
    /// Whether the path may have symbolic links in it.
    #[serde(
        default = "yes",
        deserialize_with = "or_true",
        skip_serializing_if = "is_true"
    )]
    pub follow_symlinks: bool,
    /// What the removing is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Params of `fs/copy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCopyParams {
    /// What is copied.
    pub source_path: FsPath,
    /// What the copy is called.
    pub destination_path: FsPath,
    /// With everything below it; a folder can't be copied otherwise.
    #[serde(default, deserialize_with = "or_default")]
    pub recursive: bool,
    /// What the copying is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}
