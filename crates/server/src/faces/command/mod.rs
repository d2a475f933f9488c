//! The face of `command/exec`: one call, answered at the exit. Its processes
//! belong to the connection.

mod confinement;
mod control;
mod start;
mod words;

pub(crate) use control::{resize, terminate, write};
pub(crate) use start::exec;
