//! The `fs/*` methods.
//!
//! - `service`: the files of one connection: runs operations and limits how many run at once
//! - `result_memory`: the memory of a result while it is built
//! - `whole_files`: `fs/readFile` and `fs/writeFile`
//! - `watches`: `fs/watch`, `fs/unwatch`, `fs/watchMissing`; `watch_feed`: their notifications
//! - `block_methods`: methods that read or replace files in blocks; `handles`: the table of them

mod block_methods;
mod handles;
mod result_memory;
mod service;
mod watch_feed;
mod watches;
mod whole_files;

pub(crate) use block_methods::{commit, create_stream, open, read_block, write_block};
pub(crate) use handles::{Handle, Handles};
pub(crate) use result_memory::ResultMemory;
pub(crate) use service::{FileAccess, FileService, FileUse, Subject, perform};
pub(crate) use watches::{Watches, unwatch, watch, watch_missing, watch_native};
pub(crate) use whole_files::{read_file, write_file};
