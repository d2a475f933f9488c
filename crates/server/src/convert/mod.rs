//! Domain to wire and back, in one place.

mod dialect;
mod error;
mod process;
mod sandbox;

pub(crate) use dialect::{COMMAND, Dialect, SPAWN};
pub(crate) use error::{resize_error, resume_refusal, start_error};
pub(crate) use process::{
    DEFAULT_SIZE, check_name, check_size, delivery, env_policy, overlay, process_state,
    process_trees, signal, size, stream_name, write_status,
};
pub(crate) use sandbox::{sandbox, sandbox_support};
