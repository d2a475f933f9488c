//! The spawn dialect: `process/spawn` responds at the start, and `process/exited` reports
//! the end. Its processes belong to the connection.

mod control;
mod exit_message;
mod start;

pub(crate) use control::{kill, resize_pty, write_stdin};
pub(crate) use start::spawn;
