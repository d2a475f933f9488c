//! A process, for those who use it.

mod events;
mod handle;
mod inlet;
mod input;
mod output;
mod reins;

pub use events::Events;
pub(crate) use handle::Handle;
pub use handle::Process;
pub use input::Stdin;
pub use output::OutputReader;
pub(crate) use reins::Reins;
pub use reins::Terminate;
