//! `process/*`: params, results and notifications, one file per verb.

mod ack;
mod control;
mod events;
mod exit_code;
mod list;
mod read;
mod start;
mod write;

pub use ack::AckParams;
pub use control::{ResizeParams, SignalName, SignalParams, TerminateParams, TerminateResult};
pub use events::{Ending, ProcessClosed, ProcessExited, ProcessOutput, StreamName};
pub use list::{ListResult, ProcessEntry, ProcessState};
pub use read::{ReadChunk, ReadParams, ReadResult};
pub use start::{SandboxType, Size, StartParams, StartResult};
pub use write::{WriteParams, WriteResult, WriteStatus};
