//! Params, results and notifications of the dialects whose processes belong to a connection.
//!
//! - [`spawn`]: `process/spawn`, whose result is sent at once
//! - [`command`]: `command/exec`, whose result is sent at the exit
//! - [`v0`]: the `command/exec` of the first exec protocol
//! - [`sandbox_policy`]: `sandboxPolicy` of `command/exec`
//! - [`output_delta_encoder`]: the encoder of their output

mod command;
mod output_delta_encoder;
mod sandbox_policy;
mod spawn;
mod v0;

pub use command::{
    CommandOutput, CommandParams, CommandResizeParams, CommandResult, CommandTerminateParams,
    CommandWriteParams,
};
pub use output_delta_encoder::OutputDeltaEncoder;
pub use sandbox_policy::SandboxPolicy;
pub use spawn::{
    KillParams, ResizePtyParams, SpawnExited, SpawnOutput, SpawnParams, WriteStdinParams,
};
pub use v0::{
    V0ExecParams, V0ExecResult, V0Exited, V0Output, V0TerminateParams, V0TerminateResult,
    V0WriteParams, V0WriteResult, names_argv,
};
