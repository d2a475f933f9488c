//! The shared handle on a process. Its actor is in `actor`.

mod handle;
mod ownership;
mod sandbox_denied;
mod terminate;

pub use handle::{Process, Summary, Watcher};
pub(crate) use terminate::KILL_TIMEOUT;
