//! The files of a place, the same wherever it is.
//!
//! - [`handle`] is what callers hold: one method for each operation
//! - [`reader`] and [`writer`] are streams of one file, with blocks of it
//!   [`under_way`]
//! - [`error`] says what went wrong, and with which file
//! - [`cabinet`] is what a place has to offer for all that

mod cabinet;
mod error;
mod handle;
mod reader;
mod under_way;
mod writer;

pub(crate) use cabinet::{Block, Cabinet, Draft, Opened, Source, Working};
pub(crate) use error::Trouble;
pub use error::{FileError, FileErrorKind};
pub use handle::{Files, Remove};
pub use reader::FileReader;
pub use writer::FileWriter;
