//! The face of the first exec protocol, whose `command/exec` has `argv`: answered
//! at the start, told of from then on. Its processes belong to the connection.

mod control;
mod start;
mod words;

pub(crate) use control::{terminate, write};
pub(crate) use start::exec;
