//! A process, for everybody but its actor.

mod confined;
mod ending;
mod handle;
mod ownership;

pub(crate) use ending::DIES_WITHIN;
pub use handle::{Process, State, Summary, Watcher};
