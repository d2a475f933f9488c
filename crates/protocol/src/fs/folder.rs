//! `fs/createDirectory`, `fs/readDirectory`, `fs/walk`: folders and what is in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FsPath;
use crate::params::{at_least_zero, is_true, object, or_default, or_true, yes};
use crate::{PathUri, SandboxParams};

/// Params of `fs/createDirectory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCreateDirectoryParams {
    /// What is made.
    pub path: FsPath,
    /// With every folder above it that is missing, and without an error if it is there.
    #[serde(default = "yes", deserialize_with = "or_true")]
    pub recursive: bool,
    /// Whether the path may have symbolic links in it.
    #[serde(
        default = "yes",
        deserialize_with = "or_true",
        skip_serializing_if = "is_true"
    )]
    pub follow_symlinks: bool,
    /// What the making is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Params of `fs/readDirectory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadDirectoryParams {
    /// Which folder.
    pub path: FsPath,
    /// Whether links that lead nowhere are listed too.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub broken_links: bool,
    /// What the reading is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// The answer to `fs/readDirectory`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsReadDirectoryResult {
    /// What is in it.
    pub entries: Vec<FsDirectoryEntry>,
}

/// Something in a folder. A link counts as what it leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsDirectoryEntry {
    /// Its name there.
    pub file_name: String,
    /// A folder.
    pub is_directory: bool,
    /// A regular file.
    pub is_file: bool,
    /// A link that leads nowhere; told of those alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_broken_link: bool,
}

/// Params of `fs/walk`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWalkParams {
    /// Where it starts.
    pub path: FsPath,
    /// How far it goes.
    #[serde(deserialize_with = "object")]
    pub options: FsWalkOptions,
    /// What the walk is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// `options` of `fs/walk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWalkOptions {
    /// How deep a folder may be that is looked into; the root is at 0.
    pub max_depth: u64,
    /// How many folders are looked into.
    #[serde(deserialize_with = "at_least_zero")]
    pub max_directories: u64,
    /// How many names are looked at.
    #[serde(deserialize_with = "at_least_zero")]
    pub max_entries: u64,
    /// Whether a link to a folder counts as one.
    pub follow_directory_symlinks: bool,
    /// Whether a folder whose name starts with a dot is only named.
    #[serde(default, deserialize_with = "or_default")]
    pub prune_hidden_directories: bool,
}

/// The answer to `fs/walk`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsWalkResult {
    /// Folders and files, level by level.
    pub entries: Vec<FsWalkEntry>,
    /// What couldn't be looked at.
    pub errors: Vec<FsWalkError>,
    /// Whether a limit was met.
    pub truncated: bool,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsWalkEntry {
    /// Where it is.
    pub path: PathUri,
    /// What it is.
    pub kind: FsEntryKind,
}

/// What a walk tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum FsEntryKind {
    /// A folder.
    Directory,
    /// A regular file.
    File,
}

crate::words::word!(FsEntryKind);

/// Something that couldn't be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsWalkError {
    /// Where it is. Of a name that isn't UTF-8 this is a readable form.
    pub path: PathUri,
    /// What the system said.
    pub message: String,
}
