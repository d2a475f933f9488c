//! The files of an executor, local or remote.
//!
//! - [`api`]: [`Files`], with one method per operation
//! - [`reader`] and [`writer`]: streams over one file, with several blocks in flight
//! - [`watch`]: changes of a watched path
//! - [`error`]: errors that name the operation and the file
//! - [`backend`]: the interface that an executor implements

mod api;
mod backend;
mod error;
mod reader;
mod watch;
mod writer;

pub use api::{Files, Remove};
pub(crate) use backend::{
    Block, BlockReader, BlockWriter, FileBackend, FileFuture, FileTarget, OpenedFile,
};
pub(crate) use error::BackendError;
pub use error::FileError;
pub use outpost_protocol::FileErrorKind;
pub use reader::FileReader;
pub(crate) use watch::WatchQueue;
pub use watch::{FileChanges, FileWatch, WatchOptions};
pub use writer::FileWriter;
