//! A process, for everybody but its actor.

mod confined;
mod ending;
mod handle;
mod ownership;

pub use handle::{Process, State, Summary, Watcher};
