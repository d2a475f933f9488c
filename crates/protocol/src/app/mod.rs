//! The faces whose processes belong to a connection: their params, results and notifications.
//!
//! - [`spawn`]: `process/spawn`, by a handle, acknowledged at once
//! - [`command`]: `command/exec`, answered at the exit
//! - [`v0`]: the `command/exec` of the first exec protocol
//! - [`sandbox_policy`]: what a `command/exec` may be confined to
//! - [`delta_frame`]: their output, encoded by hand

mod command;
mod delta_frame;
mod sandbox_policy;
mod spawn;
mod v0;

pub use command::{
    CommandOutput, CommandParams, CommandResizeParams, CommandResult, CommandTerminateParams,
    CommandWriteParams,
};
pub use delta_frame::DeltaFrame;
pub use sandbox_policy::{NetworkAccess, SandboxPolicy};
pub use spawn::{
    KillParams, ResizePtyParams, SpawnExited, SpawnOutput, SpawnParams, WriteStdinParams,
};
pub use v0::{
    V0ExecParams, V0ExecResult, V0Exited, V0Output, V0TerminateParams, V0TerminateResult,
    V0WriteParams, V0WriteResult, names_argv,
};
