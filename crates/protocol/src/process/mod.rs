//! `process/*`: params, results and notifications, one file per method.

mod ack;
mod control;
mod events;
mod lenient_exit_code;
mod list;
mod read;
mod start;
mod write;

pub use ack::AckParams;
pub use control::{ResizeParams, SignalParams, TerminateParams, TerminateResult};
pub use events::{ProcessClosed, ProcessExited, ProcessOutput, ReceivedExited};
pub use list::ListResult;
pub use read::{ReadChunk, ReadParams, ReadResult};
pub use start::StartResult;
pub use write::{WriteParams, WriteResult};
