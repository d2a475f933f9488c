//! Domain to wire and back, in one place.

mod dialect;
mod error;
mod files;
mod http;
mod process;
mod sandbox;

pub(crate) use dialect::{COMMAND, Dialect, SPAWN};
pub(crate) use error::{resize_error, resume_refusal, start_error};
pub(crate) use files::{
    check_handle, files_error, links, occupied, path, unknown_read_handle, unknown_write_handle,
};
pub(crate) use http::{CANCELLED, cancelled_request, fetch_error, request_error};
pub(crate) use process::{
    DEFAULT_SIZE, check_name, check_scoped_name, check_size, delivery, env_policy, overlay,
    process_state, process_trees, signal, size, stream_name, write_status,
};
pub(crate) use sandbox::{sandbox, sandbox_support};
