//! Placeholders: empty directories on the host that serve as mount points at paths that must stay
//! absent.
//!
//! A mount needs a mount point, and a path that must stay absent has none. So the server creates an empty
//! directory there and removes it when the sandboxed process has ended. Its modification time is a fixed
//! mark that identifies it to other servers of the same user and after a crash. Creating a file in it
//! changes that time, and then it is no placeholder any more. A sandboxed process could set the mark on a
//! directory of its own. So only an empty directory of our own user counts, which can be masked or
//! removed without loss.
//!
//! Every server that uses a placeholder holds a shared lock on it, and the last one removes it: removing
//! the directory under a mount would remove the mount. Bubblewrap's first process holds the locks too
//! ([`lock_carrier`]), so that they last while any process of the sandbox lives, even if the server is
//! killed.
//!
//! The parent directory is opened once, without following symbolic links, and used for all operations,
//! because the path may lead elsewhere by the time the placeholder is removed.
//!
//! A path that must stay absent for one process, such as `.git`, may be granted to another. Then there are
//! placeholders inside a placeholder. The outer one is marked again after each change, and the inner ones
//! keep it alive, so that it is removed last.
//!
//! - [`directory`]: creates, marks and recognizes a placeholder
//! - [`set`]: the placeholders of this server, shared by its processes
//! - [`watcher`]: a process that removes them if the server is killed

mod directory;
mod lock_carrier;
mod set;
mod watcher;

#[cfg(test)]
mod tests;

pub use directory::is_placeholder;
pub use set::RemovedPlaceholders;
pub(super) use set::{PlaceholderSet, Placeholders};
pub(super) use watcher::run as run_watcher;

use std::io;
use std::path::PathBuf;

/// The reason why a path can't be kept absent.
#[derive(Debug, thiserror::Error)]
pub enum PlaceholderError {
    /// The path exists now.
    #[error("cannot keep {0:?} absent: it was created after planning; retry")]
    Appeared(PathBuf),
    /// The locks of the placeholders would be lost if the server were killed.
    #[error(
        "cannot keep {count} paths absent: with those of other sandboxed processes there are more than \
         {limit}; end some processes, or deny fewer paths that do not exist"
    )]
    TooMany {
        /// The number of paths.
        count: usize,
        /// The limit for all processes of this server.
        limit: usize,
    },
    /// The locks of the placeholders can't be passed on.
    #[error("cannot pass on the locks of placeholders: {0}")]
    Locks(#[source] io::Error),
    /// A system call failed.
    #[error("cannot create a placeholder at {path:?}: {source}")]
    Os {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl PlaceholderError {
    /// Returns whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            PlaceholderError::Appeared(_) => true,
            PlaceholderError::Os { source, .. } => source.kind() == io::ErrorKind::NotFound,
            PlaceholderError::TooMany { .. } | PlaceholderError::Locks(_) => false,
        }
    }
}
