//! Descriptions of files: metadata, directory entries and the result of a walk.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PathUri;
use crate::optional_member::{negative_as_zero, or_default};
use crate::path_uri::as_uri;

/// Metadata of the file that a path leads to, following symbolic links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileMetadata {
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Whether it is a regular file.
    pub is_file: bool,
    /// Whether the path itself is a symbolic link. The other members describe its target.
    pub is_symlink: bool,
    /// Size in bytes.
    pub size: u64,
    /// Creation time in milliseconds since 1970; 0 if the file system does not record it.
    pub created_at_ms: i64,
    /// Modification time in milliseconds since 1970.
    pub modified_at_ms: i64,
}

/// An entry of a directory. A symbolic link is described by its target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirectoryEntry {
    /// The entry's name. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub file_name: String,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Whether it is a regular file.
    pub is_file: bool,
    /// Whether it is a symbolic link without a target; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_broken_link: bool,
}

/// Limits and options of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WalkOptions {
    /// The depth of the deepest directory that is read; the root has depth 0.
    pub max_depth: u64,
    /// The number of directories that are read.
    #[serde(deserialize_with = "negative_as_zero")]
    pub max_directories: u64,
    /// The number of directory entries that are examined.
    #[serde(deserialize_with = "negative_as_zero")]
    pub max_entries: u64,
    /// Whether a symbolic link to a directory is treated as a directory.
    pub follow_directory_symlinks: bool,
    /// Whether directories whose name starts with a dot are listed but not read.
    #[serde(default, deserialize_with = "or_default")]
    pub prune_hidden_directories: bool,
}

/// The result of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WalkResult {
    /// Directories and regular files, level by level and sorted by name within each directory. The
    /// root is not included.
    pub entries: Vec<WalkEntry>,
    /// The paths that could not be examined.
    pub errors: Vec<WalkError>,
    /// Whether a limit ended the walk early.
    pub truncated: bool,
}

/// A directory or regular file found by a walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WalkEntry {
    /// The root's path followed by the names below it.
    #[serde(with = "as_uri")]
    #[schemars(with = "PathUri")]
    pub path: PathBuf,
    /// Directory or file.
    pub kind: EntryKind,
}

/// The kind of a [`WalkEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
}

crate::string_enum!(EntryKind);

/// A path that a walk could not examine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WalkError {
    /// The path. Bytes that are not UTF-8 are replaced by U+FFFD.
    #[serde(with = "as_uri")]
    #[schemars(with = "PathUri")]
    pub path: PathBuf,
    /// The operating system's message. A name that is not UTF-8 counts like an entry that vanished, as
    /// released servers report it.
    pub message: String,
    /// The actual cause, if `message` does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
