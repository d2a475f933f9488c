//! The `fs/*` methods.
//!
//! - `service`: the files of one connection: runs operations and limits how many run at once
//! - `whole_files`: `fs/readFile` and `fs/writeFile`
//! - `block_methods`: methods that read or replace files in blocks; `handles`: the table of them

mod block_methods;
mod handles;
mod service;
mod whole_files;

pub(crate) use block_methods::{commit, create_stream, open, read_block, write_block};
pub(crate) use handles::{Handle, Handles};
pub(crate) use service::{FileService, Subject, perform};
pub(crate) use whole_files::{read_file, write_file};
