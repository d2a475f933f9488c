//! The `fs/*` methods.
//!
//! - `service`: the files of one connection: runs operations and limits how many run at once
//! - `whole_files`: `fs/readFile` and `fs/writeFile`
//! - `open_files`: files that are read or replaced in blocks; `handles`: the table of them

mod handles;
mod open_files;
mod service;
mod whole_files;

pub(crate) use handles::{Handle, Handles};
pub(crate) use open_files::{commit, create_stream, open, read_block, write_block};
pub(crate) use service::{FileService, Subject, perform};
pub(crate) use whole_files::{read_file, write_file};
