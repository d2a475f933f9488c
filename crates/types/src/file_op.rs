//! File operations as data: the request and the reply of each operation.
//!
//! An operation is executed in this process, by a sandboxed file worker or by a server, and all
//! three exchange these two types. Files that stay open are separate: they are handles, not data.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::optional_member::{default_true, object, or_default, or_true};
use crate::{DirectoryEntry, Empty, FileMetadata, PathUri, WalkOptions, WalkResult};

/// How symbolic links in a path are treated: `followSymlinks` on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Option<bool>", into = "bool")]
#[schemars(inline)]
pub enum Symlinks {
    /// They are followed.
    #[default]
    Follow,
    /// A path with a symbolic link in any component is rejected.
    Reject,
}

impl Symlinks {
    /// Whether links are followed.
    #[must_use]
    pub fn are_followed(&self) -> bool {
        *self == Self::Follow
    }
}

impl From<Option<bool>> for Symlinks {
    fn from(follow: Option<bool>) -> Self {
        match follow {
            Some(false) => Self::Reject,
            Some(true) | None => Self::Follow,
        }
    }
}

impl From<Symlinks> for bool {
    fn from(symlinks: Symlinks) -> Self {
        symlinks.are_followed()
    }
}

/// Defines [`FileOp`] from one row per operation: its params and the variant of [`FileReply`] that
/// it replies with.
macro_rules! file_ops {
    ($($(#[$doc:meta])* $op:ident($params:ident) -> $reply:ident;)*) => {
        /// A file operation.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum FileOp {
            $($(#[$doc])* $op($params),)*
        }

        impl FileOp {
            /// Parses the result of the operation.
            ///
            /// # Errors
            /// When it is the result of another operation.
            pub fn parse_reply(&self, result: &RawValue) -> Result<FileReply, serde_json::Error> {
                match self {
                    $(Self::$op(_) => serde_json::from_str(result.get()).map(FileReply::$reply),)*
                }
            }
        }
    };
}

file_ops! {
    /// Creates a directory.
    CreateDirectory(FsCreateDirectoryParams) -> Done;
    /// Reads the metadata of a path.
    GetMetadata(FsGetMetadataParams) -> Metadata;
    /// Resolves all symbolic links of a path.
    Canonicalize(FsCanonicalizeParams) -> Path;
    /// Lists a directory, sorted by name.
    ReadDirectory(FsReadDirectoryParams) -> Entries;
    /// Lists the tree below a directory.
    Walk(FsWalkParams) -> Walk;
    /// Removes a file, a symbolic link (not its target) or a directory.
    Remove(FsRemoveParams) -> Done;
    /// Copies a file, a symbolic link or a directory.
    Copy(FsCopyParams) -> Done;
}

/// Params of `fs/createDirectory`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FsCreateDirectoryParams")]
pub struct FsCreateDirectoryParams<P = PathUri> {
    /// The new directory.
    pub path: P,
    /// Whether missing parents are created and an existing directory is accepted.
    #[serde(default = "default_true", deserialize_with = "or_true")]
    pub recursive: bool,
    /// Whether the path may contain symbolic links.
    #[serde(
        rename = "followSymlinks",
        default,
        skip_serializing_if = "Symlinks::are_followed"
    )]
    pub symlinks: Symlinks,
}

/// Params of `fs/getMetadata`. The result is [`FileMetadata`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FsGetMetadataParams")]
pub struct FsGetMetadataParams<P = PathUri> {
    /// The path.
    pub path: P,
    /// Whether the path may contain symbolic links.
    #[serde(
        rename = "followSymlinks",
        default,
        skip_serializing_if = "Symlinks::are_followed"
    )]
    pub symlinks: Symlinks,
}

/// Params of `fs/canonicalize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsCanonicalizeParams {
    /// The path.
    pub path: PathUri,
}

/// Params of `fs/readDirectory`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FsReadDirectoryParams")]
pub struct FsReadDirectoryParams<P = PathUri> {
    /// The directory.
    pub path: P,
    /// Whether symbolic links without a target are listed.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub broken_links: bool,
}

/// Params of `fs/walk`. The result is [`WalkResult`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsWalkParams {
    /// The root of the tree.
    pub path: PathUri,
    /// The limits.
    #[serde(deserialize_with = "object")]
    pub options: WalkOptions,
}

/// Params of `fs/remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FsRemoveParams")]
pub struct FsRemoveParams<P = PathUri> {
    /// The path.
    pub path: P,
    /// Whether a directory is removed with its content.
    #[serde(default = "default_true", deserialize_with = "or_true")]
    pub recursive: bool,
    /// Whether a missing path counts as removed.
    #[serde(default = "default_true", deserialize_with = "or_true")]
    pub force: bool,
    /// Whether the path may contain symbolic links.
    #[serde(
        rename = "followSymlinks",
        default,
        skip_serializing_if = "Symlinks::are_followed"
    )]
    pub symlinks: Symlinks,
}

/// Params of `fs/copy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FsCopyParams")]
pub struct FsCopyParams<P = PathUri> {
    /// The original.
    pub source_path: P,
    /// The path of the copy.
    pub destination_path: P,
    /// Whether a directory is copied with its content; it is rejected otherwise.
    #[serde(default, deserialize_with = "or_default")]
    pub recursive: bool,
}

/// Result of `fs/canonicalize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsCanonicalizeResult {
    /// The path with all symbolic links resolved.
    pub path: PathUri,
}

/// Result of `fs/readDirectory`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsReadDirectoryResult {
    /// The entries, sorted by name.
    pub entries: Vec<DirectoryEntry>,
}

/// The result of a successful [`FileOp`]. Serializes as the result of its method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FileReply {
    /// Nothing but success.
    Done(Empty),
    /// The metadata of a path.
    Metadata(FileMetadata),
    /// A path without symbolic links.
    Path(FsCanonicalizeResult),
    /// The entries of a directory.
    Entries(FsReadDirectoryResult),
    /// The tree below a directory.
    Walk(WalkResult),
}

/// The approximate encoded size of an entry of a listing without its name.
const ENTRY_BYTES: usize = 64;

impl FileReply {
    /// The approximate encoded size of a listing; none for any other reply.
    #[must_use]
    pub fn listing_bytes(&self) -> Option<usize> {
        match self {
            Self::Entries(result) => {
                let names = result.entries.iter().map(|entry| entry.file_name.len());
                Some(names.map(|len| len + ENTRY_BYTES).sum())
            }
            Self::Walk(walk) => {
                let paths = walk.entries.iter();
                let lengths = paths.map(|entry| entry.path.as_os_str().len());
                Some(lengths.map(|len| len + ENTRY_BYTES).sum())
            }
            Self::Done(_) | Self::Metadata(_) | Self::Path(_) => None,
        }
    }
}

/// How an operation uses a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// The file that the path leads to.
    Target,
    /// The directory entry itself, which may be a symbolic link.
    Entry,
    /// The path is created or replaced.
    Create,
}

/// A path of an operation and its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedPath<'a> {
    /// The path.
    pub path: &'a Path,
    /// How symbolic links in it are treated.
    pub symlinks: Symlinks,
    /// The access that the operation needs.
    pub path_use: PathUse,
}

/// The entries below its paths that an operation lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingScope {
    /// No entries.
    Nothing,
    /// The entries of the directory itself.
    Directory,
    /// Everything below.
    Tree,
    /// Everything below, and everything that symbolic links there lead to.
    Anywhere,
}

impl FileOp {
    /// Whether the operation changes nothing. It may then run without write access, and be repeated
    /// if its reply is lost.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::GetMetadata(_)
            | Self::Canonicalize(_)
            | Self::ReadDirectory(_)
            | Self::Walk(_) => true,
            Self::CreateDirectory(_) | Self::Remove(_) | Self::Copy(_) => false,
        }
    }

    /// The entries that the operation lists.
    #[must_use]
    pub fn listing(&self) -> ListingScope {
        match self {
            Self::ReadDirectory(_) => ListingScope::Directory,
            Self::Walk(walk) if walk.options.follow_directory_symlinks => ListingScope::Anywhere,
            Self::Walk(_) | Self::Copy(_) => ListingScope::Tree,
            Self::CreateDirectory(_)
            | Self::GetMetadata(_)
            | Self::Canonicalize(_)
            | Self::Remove(_) => ListingScope::Nothing,
        }
    }

    /// Whether the reply is a listing, which can be large.
    #[must_use]
    pub fn replies_with_listing(&self) -> bool {
        match self {
            Self::ReadDirectory(_) | Self::Walk(_) => true,
            Self::CreateDirectory(_)
            | Self::GetMetadata(_)
            | Self::Canonicalize(_)
            | Self::Remove(_)
            | Self::Copy(_) => false,
        }
    }

    /// Every path of the operation. The last one is the path that operations are ordered by.
    #[must_use]
    pub fn used_paths(&self) -> Vec<UsedPath<'_>> {
        fn used(path: &PathUri, symlinks: Symlinks, path_use: PathUse) -> UsedPath<'_> {
            UsedPath {
                path: path.as_path(),
                symlinks,
                path_use,
            }
        }
        let read = |path| vec![used(path, Symlinks::Follow, PathUse::Target)];
        match self {
            Self::GetMetadata(op) => vec![used(&op.path, op.symlinks, PathUse::Target)],
            Self::Canonicalize(op) => read(&op.path),
            Self::ReadDirectory(op) => read(&op.path),
            Self::Walk(op) => read(&op.path),
            Self::CreateDirectory(op) => vec![used(&op.path, op.symlinks, PathUse::Create)],
            Self::Remove(op) => vec![used(&op.path, op.symlinks, PathUse::Entry)],
            Self::Copy(op) => vec![
                used(&op.source_path, Symlinks::Follow, PathUse::Entry),
                used(&op.destination_path, Symlinks::Follow, PathUse::Create),
            ],
        }
    }
}

/// A [`FileReply`] of another kind than the operation promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedReply;

macro_rules! reply {
    ($variant:pat => $value:expr, $type:ty) => {
        impl TryFrom<FileReply> for $type {
            type Error = UnexpectedReply;

            fn try_from(reply: FileReply) -> Result<Self, UnexpectedReply> {
                match reply {
                    $variant => Ok($value),
                    _ => Err(UnexpectedReply),
                }
            }
        }
    };
}

reply!(FileReply::Done(Empty {}) => (), ());
reply!(FileReply::Metadata(metadata) => metadata, FileMetadata);
reply!(FileReply::Path(result) => result.path.into_path(), PathBuf);
reply!(FileReply::Entries(result) => result.entries, Vec<DirectoryEntry>);
reply!(FileReply::Walk(walk) => walk, WalkResult);

/// The kind of a failed file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The path does not exist.
    NotFound,
    /// The operating system denied access.
    Denied,
    /// The request is invalid for this path.
    Invalid,
    /// The operation was tried and failed.
    Failed,
    /// The connection was lost while a file was read, and the file has changed since: the rest would
    /// not belong to the same content.
    Changed,
    /// The connection was lost while a file was written. The old file is unchanged.
    Interrupted,
    /// The connection was lost during the commit of a file. It may or may not have been replaced.
    Unknown,
    /// The operation was not tried: the executor is unreachable or does not support it.
    Unavailable,
}
