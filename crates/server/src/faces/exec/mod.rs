//! The exec face: `process/start` and what follows. Its processes belong to the
//! session.

mod control;
mod list;
mod read;
mod start;
mod teller;
mod write;

pub(crate) use control::{acknowledge, resize, signal, terminate};
pub(crate) use list::list;
pub(crate) use read::read;
pub(crate) use start::start;
pub(crate) use teller::EventTeller;
pub(crate) use write::write;
