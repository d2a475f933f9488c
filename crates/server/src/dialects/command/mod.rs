//! The command dialect: `command/exec` responds at the exit. Its processes belong to the
//! connection.

mod control;
mod exit_message;
mod sandbox_policy;
mod start;

pub(crate) use control::{resize, terminate, write};
pub(crate) use start::exec;
