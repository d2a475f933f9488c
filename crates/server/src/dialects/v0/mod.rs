//! The v0 dialect: `command/exec` with `argv`, of the first exec protocol. It responds at
//! the start; notifications follow. Its processes belong to the connection.

mod control;
mod exit_message;
mod start;

pub(crate) use control::{terminate, write};
pub(crate) use start::exec;
