//! Processes: public handles and the parts that all executors share.
//!
//! - [`handle`]: [`Process`], the public handle
//! - [`event_log`]: the event log of one process and its readers ([`readers`])
//! - [`events`], [`output`]: a log as a stream of events, or of one stream's bytes
//! - [`stdin`], [`stdin_queue`]: ordered writes to standard input
//! - [`backend`]: the operations that each executor implements

mod backend;
mod event_log;
mod events;
mod handle;
mod output;
mod readers;
mod stdin;
mod stdin_queue;

pub(crate) use backend::ProcessBackend;
pub use backend::Terminate;
pub(crate) use event_log::{EventSource, ProcessLog};
pub use events::Events;
pub use handle::Process;
pub(crate) use handle::ProcessShared;
pub use output::OutputReader;
pub use stdin::Stdin;
