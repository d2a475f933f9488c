//! The face of `process/spawn`: handles, acknowledged at once, and told of when
//! they have exited. Its processes belong to the connection.

mod control;
mod start;
mod words;

pub(crate) use control::{kill, resize_pty, write_stdin};
pub(crate) use start::spawn;
