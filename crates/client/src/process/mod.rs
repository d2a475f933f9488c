//! Processes: public handles and the parts that all executors share.
//!
//! - [`handle`]: [`Process`], the public handle, and the operations that each executor implements
//! - [`event_log`]: the event log of one process and its readers
//! - [`events`]: [`Event`], and a log as a stream of events, or of one stream's bytes
//! - [`stdin`]: ordered writes to standard input

mod event_log;
mod events;
mod handle;
mod stdin;

pub(crate) use event_log::ProcessLog;
#[cfg(feature = "remote")]
pub(crate) use events::output_len;
pub use events::{Chunk, Event, Events, OutputReader, Page};
pub(crate) use handle::ProcessBackend;
pub use handle::{Process, Terminate};
pub use stdin::Stdin;
