//! The `fs/*` methods.
//!
//! - `service`: the files of one connection: runs operations and limits how many run at once
//! - `handles`: the table of open handles of a connection
//! - `executor`: selects the executor of an operation: in this process or in a sandboxed worker
//! - `operation`: the methods that are a [`FileOp`](outpost_protocol::FileOp)
//! - `read_file`, `write_file`: whole files; `blocks`: open files; `stream`: files that are replaced
//! - `errors`: error responses

mod blocks;
mod errors;
mod executor;
mod handles;
mod operation;
mod read_file;
mod service;
mod stream;
mod write_file;

pub(crate) use blocks::{close, open, read_block};
pub(crate) use errors::check_handle;
pub(crate) use handles::{OpenRejected, ReservationId};
pub(crate) use operation::perform;
pub(crate) use read_file::read_file;
pub(crate) use service::{FileService, Subject};
pub(crate) use stream::{commit, create_stream, write_block};
pub(crate) use write_file::write_file;
