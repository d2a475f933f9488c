//! Watches files and directories for changes.
//!
//! A [`Watcher`] holds the watches of one client on one inotify instance (`inotify`) and one thread
//! (`watcher`), and reports to a [`WatchListener`].
//!
//! - `path_watch`: a file, a directory with its entries or with everything below, or a path that does
//!   not exist yet. Every directory on the way to the path is watched too (`resolution`), so a watch
//!   survives that the path is replaced, removed and created again. The directories below it are in
//!   its `tree`.
//! - `permits`: shares what the kernel permits among watchers
//! - `missing`: reports once that one of several missing paths may exist.
//!
//! **No lost changes.** A directory is watched before anything is looked up in it. What changes after
//! that is an event, and what changed before is seen. If the kernel's queue overflows or a limit is
//! reached, [`Changes::missed`] is set. A directory below the path that cannot be read is reported
//! ([`Changes::unreadable`]), and watched once its mode or owner permits it.

mod changes;
mod error;
mod inotify;
mod missing;
mod path_watch;
mod permits;
mod resolution;
mod set;
mod tree;
mod watcher;

pub use changes::Changes;
pub use error::WatchError;
pub use missing::MissingPathsRequest;
pub use permits::{WatchPermit, WatchPermits};
pub use watcher::{WatchKey, WatchLimits, WatchListener, WatchOptions, Watcher};
