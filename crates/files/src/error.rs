//! The error of all file operations.

use std::io;

use outpost_types::{FileErrorKind, PathUri};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The reason why a file operation failed.
///
/// Messages contain only the path that the caller asked for.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub enum FilesError {
    /// An error of the operating system.
    #[error("{0}")]
    Os(
        #[from]
        #[serde(with = "os_error")]
        io::Error,
    ),
    /// The path contains a symbolic link, and links are to be rejected.
    #[error("path contains a symbolic link")]
    SymbolicLink,
    /// The path leads to the files of this process in a procfs.
    #[error("path leads to the server's own files in /proc")]
    OwnProcfs,
    /// The path leads to a secret of this program.
    #[error("path leads to a secret of the server")]
    Secret,
    /// The path contains a link of a procfs to an open file or directory.
    #[error(
        "path contains a link of /proc to an open file or directory; use the target's own path"
    )]
    ProcfsLink,
    /// The path leads to a FIFO, a socket or a device.
    #[error("{}", not_a_file(path.as_ref()))]
    NotRegularFile {
        /// The path that the caller asked for; none if the operation met it on its way.
        path: Option<PathUri>,
    },
    /// The file is too large to be read as a whole.
    #[error("file is larger than {limit} bytes")]
    FileTooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The requested block is empty or too large.
    #[error("file read block length must be between 1 and {limit}")]
    BlockLength {
        /// The limit in bytes.
        limit: u64,
    },
    /// The block to be written is empty or too large.
    #[error("file write block length must be between 1 and {limit}")]
    WriteLength {
        /// The limit in bytes.
        limit: u64,
    },
    /// The block to be written ends beyond the largest file offset.
    #[error("file write range exceeds the signed 64-bit file offset limit")]
    WriteRange,
    /// The directory has too many entries.
    #[error("directory has more than {limit} entries")]
    TooManyEntries {
        /// The limit.
        limit: usize,
    },
    /// A limit of the walk is zero.
    #[error("filesystem walk limits must be greater than zero")]
    ZeroWalkLimit,
    /// A limit of the walk is too high.
    #[error(
        "filesystem walk limits exceed maximums: depth={depth}, directories={directories}, entries={entries}"
    )]
    WalkLimitsTooHigh {
        /// The highest allowed `max_depth`.
        depth: u64,
        /// The highest allowed `max_directories`.
        directories: u64,
        /// The highest allowed `max_entries`.
        entries: u64,
    },
    /// The source is a directory, and the copy is not recursive.
    #[error("fs/copy requires recursive: true when sourcePath is a directory")]
    CopyNeedsRecursive,
    /// The copy would be inside its source.
    #[error("fs/copy cannot copy a directory to itself or one of its descendants")]
    CopyIntoItself,
    /// The source is a FIFO, a socket or a device.
    #[error("fs/copy only supports regular files, directories, and symlinks")]
    CopyUnsupported,
    /// The directory tree is too deep.
    #[error("directory is more than {limit} levels deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// There is no memory for the listing.
    #[error("no memory for the listing; retry later")]
    NoListingMemory,
    /// Another process moved the directory while it was being removed.
    #[error("directory was moved while it was being removed")]
    Moved,
    /// The file worker ended without a valid reply.
    #[error("the sandboxed file operation ended without a valid reply")]
    NoReply,
    /// The file worker did not reply in time.
    #[error("the sandboxed file operation took too long")]
    Timeout,
}

impl FilesError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> FileErrorKind {
        match self {
            Self::Os(error) => match error.kind() {
                io::ErrorKind::NotFound => FileErrorKind::NotFound,
                // EACCES and EPERM.
                io::ErrorKind::PermissionDenied => FileErrorKind::Denied,
                io::ErrorKind::InvalidInput => FileErrorKind::Invalid,
                _ => FileErrorKind::Failed,
            },
            Self::OwnProcfs | Self::Secret | Self::ProcfsLink => FileErrorKind::Denied,
            Self::TooManyEntries { .. }
            | Self::TooDeep { .. }
            | Self::NoListingMemory
            | Self::Moved
            | Self::NoReply
            | Self::Timeout => FileErrorKind::Failed,
            Self::SymbolicLink
            | Self::NotRegularFile { .. }
            | Self::FileTooLarge { .. }
            | Self::BlockLength { .. }
            | Self::WriteLength { .. }
            | Self::WriteRange
            | Self::ZeroWalkLimit
            | Self::WalkLimitsTooHigh { .. }
            | Self::CopyNeedsRecursive
            | Self::CopyIntoItself
            | Self::CopyUnsupported => FileErrorKind::Invalid,
        }
    }

    /// The errno of the failed system call.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Os(error) => error.raw_os_error(),
            _ => None,
        }
    }

    /// Names the path that the caller asked for in an error that is about it.
    pub(crate) fn about(self, path: &PathUri) -> Self {
        match self {
            Self::NotRegularFile { path: None } => Self::NotRegularFile {
                path: Some(path.clone()),
            },
            error => error,
        }
    }

    /// Whether it is this error of the operating system.
    pub(crate) fn is(&self, errno: Errno) -> bool {
        matches!(self, Self::Os(error) if error.raw_os_error() == Some(errno.raw_os_error()))
    }
}

/// The text for a path that leads to no regular file. Released clients compare the text with a path.
fn not_a_file(path: Option<&PathUri>) -> String {
    match path {
        Some(path) => format!("path `{}` is not a file", path.as_path().display()),
        None => "path is not a regular file".to_owned(),
    }
}

impl From<Errno> for FilesError {
    fn from(errno: Errno) -> Self {
        Self::Os(errno.into())
    }
}

/// Serializes an I/O error as its errno.
mod os_error {
    use std::io;

    use rustix::io::Errno;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// An error of the standard library without an errno is mapped to the closest one.
    pub(super) fn serialize<S: Serializer>(
        error: &io::Error,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let errno = error.raw_os_error().unwrap_or_else(|| {
            let errno = match error.kind() {
                io::ErrorKind::OutOfMemory => Errno::NOMEM,
                io::ErrorKind::InvalidInput => Errno::INVAL,
                io::ErrorKind::NotFound => Errno::NOENT,
                _ => Errno::IO,
            };
            errno.raw_os_error()
        });
        serializer.serialize_i32(errno)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<io::Error, D::Error> {
        i32::deserialize(deserializer).map(io::Error::from_raw_os_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_errors_keep_their_kind_and_message() {
        let rows = [
            (
                Errno::NOENT,
                FileErrorKind::NotFound,
                "No such file or directory (os error 2)",
            ),
            (
                Errno::ACCESS,
                FileErrorKind::Denied,
                "Permission denied (os error 13)",
            ),
            (
                Errno::PERM,
                FileErrorKind::Denied,
                "Operation not permitted (os error 1)",
            ),
            (
                Errno::INVAL,
                FileErrorKind::Invalid,
                "Invalid argument (os error 22)",
            ),
            (
                Errno::ROFS,
                FileErrorKind::Failed,
                "Read-only file system (os error 30)",
            ),
            (
                Errno::NOSPC,
                FileErrorKind::Failed,
                "No space left on device (os error 28)",
            ),
            (
                Errno::IO,
                FileErrorKind::Failed,
                "Input/output error (os error 5)",
            ),
        ];
        for (errno, kind, message) in rows {
            let error = FilesError::from(errno);
            assert_eq!(
                (error.kind(), error.to_string()),
                (kind, message.to_owned())
            );
        }
    }
}
