//! The exec face: `process/start` and what follows. Its processes belong to the
//! session.

mod control;
mod feed;
mod list;
mod read;
mod start;
mod write;

pub(crate) use control::{acknowledge, resize, signal, terminate};
pub(crate) use feed::Feeds;
pub(crate) use list::list;
pub(crate) use read::read;
pub(crate) use start::start;
pub(crate) use write::write;
