//! File operations as data: the request and the reply of each operation.
//!
//! An operation is executed in this process, by a sandboxed file worker or by a server, and all
//! three exchange these two types. Files that stay open are separate: they are handles, not data.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{DirectoryEntry, FileMetadata, WalkOptions, WalkResult};

/// How symbolic links in a path are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Symlinks {
    /// They are followed.
    #[default]
    Follow,
    /// A path with a symbolic link in any component is rejected.
    Reject,
}

impl Symlinks {
    /// `Follow` if `follow` is set.
    #[must_use]
    pub fn following(follow: bool) -> Self {
        if follow { Self::Follow } else { Self::Reject }
    }

    /// Whether links are followed.
    #[must_use]
    pub fn are_followed(self) -> bool {
        self == Self::Follow
    }
}

/// A file operation. Paths are native paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileOp {
    /// Creates a directory. Replies with [`FileReply::Done`].
    CreateDirectory {
        /// The new directory.
        #[serde(with = "path_bytes")]
        path: PathBuf,
        /// Whether missing parents are created and an existing directory is accepted.
        recursive: bool,
        /// How symbolic links in the path are treated.
        symlinks: Symlinks,
    },
    /// Reads the metadata of a path. Replies with [`FileReply::Metadata`].
    GetMetadata {
        /// The path.
        #[serde(with = "path_bytes")]
        path: PathBuf,
        /// How symbolic links in the path are treated.
        symlinks: Symlinks,
    },
    /// Resolves all symbolic links of a path. Replies with [`FileReply::Path`].
    Canonicalize {
        /// The path.
        #[serde(with = "path_bytes")]
        path: PathBuf,
    },
    /// Lists a directory, sorted by name. Replies with [`FileReply::Entries`].
    ReadDirectory {
        /// The directory.
        #[serde(with = "path_bytes")]
        path: PathBuf,
        /// Whether symbolic links without a target are listed.
        broken_links: bool,
    },
    /// Lists the tree below a directory. Replies with [`FileReply::Walk`].
    Walk {
        /// The root of the tree.
        #[serde(with = "path_bytes")]
        path: PathBuf,
        /// The limits.
        options: WalkOptions,
    },
    /// Removes a file, a symbolic link (not its target) or a directory. Replies with
    /// [`FileReply::Done`].
    Remove {
        /// The path.
        #[serde(with = "path_bytes")]
        path: PathBuf,
        /// Whether a directory is removed with its content; otherwise it must be empty.
        recursive: bool,
        /// Whether a missing path counts as removed.
        force: bool,
        /// How symbolic links in the path are treated, the last component included.
        symlinks: Symlinks,
    },
    /// Copies a file, a symbolic link or a directory. Replies with [`FileReply::Done`].
    Copy {
        /// The original.
        #[serde(with = "path_bytes")]
        source: PathBuf,
        /// The path of the copy.
        #[serde(with = "path_bytes")]
        destination: PathBuf,
        /// Whether a directory is copied with its content; otherwise it is rejected.
        recursive: bool,
    },
}

/// The result of a successful [`FileOp`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileReply {
    /// Nothing but success.
    Done,
    /// The metadata of a path.
    Metadata(FileMetadata),
    /// A path without symbolic links.
    Path(#[serde(with = "path_bytes")] PathBuf),
    /// The entries of a directory.
    Entries(Vec<DirectoryEntry>),
    /// The tree below a directory.
    Walk(WalkResult),
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

impl FileOp {
    /// Whether the operation changes nothing. It may then run without write access, and be repeated
    /// if its reply is lost.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::GetMetadata { .. }
            | Self::Canonicalize { .. }
            | Self::ReadDirectory { .. }
            | Self::Walk { .. } => true,
            Self::CreateDirectory { .. } | Self::Remove { .. } | Self::Copy { .. } => false,
        }
    }

    /// Every path of the operation. The last one is the path that operations are ordered by.
    #[must_use]
    pub fn used_paths(&self) -> Vec<UsedPath<'_>> {
        let used = |path, symlinks, path_use| UsedPath {
            path,
            symlinks,
            path_use,
        };
        match self {
            Self::GetMetadata { path, symlinks } => vec![used(path, *symlinks, PathUse::Target)],
            Self::Canonicalize { path }
            | Self::ReadDirectory { path, .. }
            | Self::Walk { path, .. } => vec![used(path, Symlinks::Follow, PathUse::Target)],
            Self::CreateDirectory { path, symlinks, .. } => {
                vec![used(path, *symlinks, PathUse::Create)]
            }
            Self::Remove { path, symlinks, .. } => vec![used(path, *symlinks, PathUse::Entry)],
            Self::Copy {
                source,
                destination,
                ..
            } => vec![
                used(source, Symlinks::Follow, PathUse::Entry),
                used(destination, Symlinks::Follow, PathUse::Create),
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

reply!(FileReply::Done => (), ());
reply!(FileReply::Metadata(metadata) => metadata, FileMetadata);
reply!(FileReply::Path(path) => path, PathBuf);
reply!(FileReply::Entries(entries) => entries, Vec<DirectoryEntry>);
reply!(FileReply::Walk(walk) => walk, WalkResult);

/// Serializes a path as its bytes. Serde's own implementation rejects a path that is not UTF-8.
pub mod path_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes the bytes of a path.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(path.as_os_str().as_bytes())
    }

    /// Reads the bytes of a path.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    }
}
