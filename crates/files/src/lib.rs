//! File operations: the only crate that opens a path sent by a client.
//!
//! Operations are blocking functions on absolute and normalized paths. They know no async runtime
//! and no session, so that the same code runs in this process and in a sandboxed file worker.
//!
//! - [`FileExecutor::perform`] executes a [`FileOp`](outpost_types::FileOp), in this process or in a
//!   sandboxed worker process, where [`run_worker`] is the main loop
//! - [`Files`] implements the operations
//! - [`OpenFile`] is an open file that is read in blocks; [`Writer`] replaces a file with new content
//!   written in blocks
//! - [`Watcher`] reports changes of files and directories
//! - [`Limits`] holds every limit
//! - [`FilesError`] is the error of all operations, classified by
//!   [`FileErrorKind`](outpost_types::FileErrorKind)
//!
//! **Symbolic links.** With [`Symlinks::Reject`](outpost_types::Symlinks), no component of the path
//! may be a symbolic link, without a race: either the kernel resolves the whole path that way
//! (`openat2`), or each component is opened relative to the previous descriptor (`resolve`). The last
//! component is then accessed relative to its open parent directory, never by path again.
//!
//! **Own files in `/proc`.** Operations reject the procfs files of the process that performs them, and
//! links in `/proc` to open files and directories of any process (`procfs`).
//!
//! **Secrets of the server.** Operations reject files that the program has named as its secrets (`secrets`).
//!
//! **Special files.** Opening a FIFO blocks until the other end is opened, and opening a device can
//! have side effects. Both are detected before they are opened and checked again afterwards
//! (`regular`).

mod atomic_write;
mod copy;
mod directory;
mod directory_entries;
mod error;
mod executor;
mod files;
mod metadata;
mod path_masks;
mod procfs;
mod regular;
mod remove;
mod resolve;
mod secrets;
mod walk;
mod watch;
mod worker;

pub use atomic_write::Writer;
pub use directory_entries::TakeListingMemory;
pub use error::FilesError;
pub use executor::{FileExecutor, InProcess, Sandboxed};
pub use files::{Files, Limits, SymlinkCheck};
pub use path_masks::PathMasks;
pub use regular::{Block, OpenFile};
pub use secrets::protect;
pub use watch::{
    Changes, MissingPathsRequest, WatchError, WatchKey, WatchLimits, WatchListener, WatchOptions,
    WatchPermit, WatchPermits, Watcher,
};
pub use worker::{WorkerSocket, run_worker};
