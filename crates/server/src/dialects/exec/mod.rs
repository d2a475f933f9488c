//! The exec dialect: `process/start` and its siblings. Its processes belong to the session.

mod control;
mod event_encoder;
mod list;
mod read;
mod start;
mod write;

pub(crate) use control::{acknowledge, resize, signal, terminate};
pub(crate) use event_encoder::ExecEventEncoder;
pub(crate) use list::list;
pub(crate) use read::read;
pub(crate) use start::start;
pub(crate) use write::write;
