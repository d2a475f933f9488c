//! File operations: the only room that opens a path which a client has sent.
//!
//! An operation is a plain function of native paths and options. It blocks, so callers put it where
//! blocking is fine; it knows no wire, no runtime and no session, so that the same operation can be
//! run in this process or in a confined one.
//!
//! - [`Files`] has the operations, one file per verb: `read`, `write`, `create_directory`,
//!   `metadata`, `canonicalize`, `read_directory`, `walk`, `remove`, `copy`
//! - [`OpenFile`] is a file that stays open for blocks of it, [`StreamWriter`] a file that is being
//!   replaced in blocks
//! - [`Clerk`] does the same operations here or in a confined process, where [`serve`] does them
//! - [`Limits`] has every number
//! - [`FilesError`] says why not; its [`ErrorKind`] is what callers tell apart
//!
//! **Links.** Where [`Links::Refuse`] is asked for, no component of the path may be a symbolic link,
//! and there is no moment at which one could be put there: either the kernel resolves the whole path
//! so (`openat2`), or it is walked descriptor by descriptor (`resolve`). What is done at the end of a
//! path is done to a name in an open directory, never to the path again.
//!
//! **Special files.** Opening a FIFO would wait for its other end, and opening a device may do
//! something. Both are recognised before they are opened, and once more afterwards (`regular`).

mod claim;
mod confined;
mod copy;
mod copy_tree;
mod create_directory;
mod error;
mod files;
mod gaps;
mod identity;
mod limits;
mod metadata;
mod names;
mod read;
mod read_directory;
mod regular;
mod remove;
mod remove_tree;
mod resolve;
mod stream;
mod walk;
mod write;

pub use confined::{Clerk, Confined, Here, Line, Masks, Writer, serve};
pub use error::{ErrorKind, FilesError};
pub use files::{Files, Links, Means};
pub use limits::Limits;
pub use metadata::Metadata;
pub use read::{Block, OpenFile};
pub use read_directory::DirectoryEntry;
pub use remove::Remove;
pub use stream::StreamWriter;
pub use walk::{EntryKind, Walk, WalkEntry, WalkError, WalkOptions};
