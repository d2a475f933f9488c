//! Why an operation failed.

use std::io;

use rustix::io::Errno;

/// Why an operation failed. No message names a path: who asked knows which one it was, and no other
/// may be named.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The operating system says no, in its own words.
    #[error("{0}")]
    Os(#[from] io::Error),
    /// Links were to be refused, and there is one.
    #[error("path contains a symbolic link")]
    SymbolicLink,
    /// A FIFO, a socket or a device.
    #[error("path is not a regular file")]
    NotAFile,
    /// Too large to be read as a whole.
    #[error("file is larger than {limit} bytes")]
    FileTooLarge {
        /// How large it may be.
        limit: u64,
    },
    /// A block of nothing, or too large a one.
    #[error("file read block length must be between 1 and {limit}")]
    BlockLength {
        /// How large it may be.
        limit: u64,
    },
    /// Too many names to be listed.
    #[error("directory has more than {limit} entries")]
    TooManyEntries {
        /// How many it may have.
        limit: usize,
    },
    /// A walk that may look at nothing.
    #[error("filesystem walk limits must be greater than zero")]
    WalkOfNothing,
    /// A walk that would look at too much.
    #[error(
        "filesystem walk limits exceed maximums: depth={depth}, directories={directories}, entries={entries}"
    )]
    WalkTooFar {
        /// How deep it may go.
        depth: u64,
        /// How many directories it may look into.
        directories: u64,
        /// How many names it may look at.
        entries: u64,
    },
    /// A directory, which is copied with everything below it or not at all.
    #[error("fs/copy requires recursive: true when sourcePath is a directory")]
    CopyOfDirectory,
    /// The copy would be a part of itself.
    #[error("fs/copy cannot copy a directory to itself or one of its descendants")]
    CopyIntoItself,
    /// Something of which there can't be a copy.
    #[error("fs/copy only supports regular files, directories, and symlinks")]
    CopyOfSpecial,
    /// A tree with too many levels.
    #[error("directory is more than {limit} levels deep")]
    TooDeep {
        /// How many it may have.
        limit: usize,
    },
    /// Somebody moved a directory while it was being removed.
    #[error("directory was moved while it was being removed")]
    Moved,
    /// Who was to do it, confined, has gone.
    #[error("the confined file operation ended without an answer")]
    Unanswered,
    /// Who was to do it, confined, takes too long.
    #[error("the confined file operation took too long")]
    Slow,
}

/// What callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// There is no such thing.
    NotFound,
    /// It was asked for what is no good, or isn't allowed.
    Invalid,
    /// It went wrong.
    Failed,
}

impl FilesError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Os(error) => match error.kind() {
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                // EACCES and EPERM are one kind to the standard library.
                io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => ErrorKind::Invalid,
                _ => ErrorKind::Failed,
            },
            Self::TooManyEntries { .. }
            | Self::TooDeep { .. }
            | Self::Moved
            | Self::Unanswered
            | Self::Slow => ErrorKind::Failed,
            Self::SymbolicLink
            | Self::NotAFile
            | Self::FileTooLarge { .. }
            | Self::BlockLength { .. }
            | Self::WalkOfNothing
            | Self::WalkTooFar { .. }
            | Self::CopyOfDirectory
            | Self::CopyIntoItself
            | Self::CopyOfSpecial => ErrorKind::Invalid,
        }
    }

    /// Whether the operating system said exactly this.
    pub(crate) fn is(&self, errno: Errno) -> bool {
        matches!(self, Self::Os(error) if error.raw_os_error() == Some(errno.raw_os_error()))
    }
}

impl From<Errno> for FilesError {
    fn from(errno: Errno) -> Self {
        Self::Os(errno.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_told_apart_and_in_its_words() {
        let of = |errno: Errno| {
            let error = FilesError::from(errno);
            (error.kind(), error.to_string())
        };
        let said = |kind, words: &str| (kind, words.to_owned());
        let rows = [
            (
                Errno::NOENT,
                ErrorKind::NotFound,
                "No such file or directory (os error 2)",
            ),
            (
                Errno::ACCESS,
                ErrorKind::Invalid,
                "Permission denied (os error 13)",
            ),
            (
                Errno::PERM,
                ErrorKind::Invalid,
                "Operation not permitted (os error 1)",
            ),
            (
                Errno::INVAL,
                ErrorKind::Invalid,
                "Invalid argument (os error 22)",
            ),
            (
                Errno::ROFS,
                ErrorKind::Failed,
                "Read-only file system (os error 30)",
            ),
            (
                Errno::NOSPC,
                ErrorKind::Failed,
                "No space left on device (os error 28)",
            ),
            (
                Errno::IO,
                ErrorKind::Failed,
                "Input/output error (os error 5)",
            ),
        ];
        for (errno, kind, words) in rows {
            assert_eq!(of(errno), said(kind, words));
        }
    }
}
