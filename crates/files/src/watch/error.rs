//! The reasons why a path cannot be watched.

use std::io;

use outpost_types::FileErrorKind;
use rustix::io::Errno;

/// The reason why a path cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// An error of the operating system.
    #[error("{0}")]
    Os(#[from] io::Error),
    /// The kernel's limit of inotify instances per user is reached.
    #[error(
        "the user's inotify instances are used up; raise the limit, for example with \
         `sysctl fs.inotify.max_user_instances=1024`"
    )]
    TooManyInstances,
    /// The kernel's limit of watched files and directories per user is reached.
    #[error(
        "the user's inotify watches are used up; watch fewer directories or raise the limit, for \
         example with `sysctl fs.inotify.max_user_watches=1048576`"
    )]
    TooManyKernelWatches,
    /// The limit of watched directories is reached.
    #[error("more than {limit} directories would be watched; watch fewer, or without recursion")]
    TooManyDirectories {
        /// The limit.
        limit: usize,
    },
    /// Other watchers of this program have all inotify instances that it may use.
    #[error(
        "too many connections watch files; end the watches of another connection, or raise the limit, for \
         example with `sysctl fs.inotify.max_user_instances=1024`, and restart the server"
    )]
    NoInstanceLeft,
    /// The client's share of the files and directories that this program may watch is used up.
    #[error(
        "the client's share of the watched files and directories is used up; watch fewer directories or raise \
         the limit, for example with `sysctl fs.inotify.max_user_watches=1048576`, and restart the server"
    )]
    NoDirectoryLeft,
    /// The limit of watches is reached.
    #[error("at most {limit} watches may be open; end one first")]
    TooManyWatches {
        /// The limit.
        limit: usize,
    },
    /// The kernel reports changes without regard to what a sandbox hides.
    #[error("a watch cannot be sandboxed; watch without a sandbox, or list the files in it")]
    Sandboxed,
    /// The watcher has ended.
    #[error("the watcher has ended")]
    Ended,
}

impl WatchError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> FileErrorKind {
        match self {
            Self::Os(error) => match error.kind() {
                io::ErrorKind::NotFound => FileErrorKind::NotFound,
                io::ErrorKind::PermissionDenied => FileErrorKind::Denied,
                _ => FileErrorKind::Failed,
            },
            Self::TooManyWatches { .. } | Self::TooManyDirectories { .. } | Self::Sandboxed => {
                FileErrorKind::Invalid
            }
            Self::TooManyInstances
            | Self::TooManyKernelWatches
            | Self::NoInstanceLeft
            | Self::NoDirectoryLeft
            | Self::Ended => FileErrorKind::Failed,
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

    pub(super) fn is(&self, errno: Errno) -> bool {
        self.errno() == Some(errno.raw_os_error())
    }
}

impl From<Errno> for WatchError {
    fn from(errno: Errno) -> Self {
        Self::Os(errno.into())
    }
}
