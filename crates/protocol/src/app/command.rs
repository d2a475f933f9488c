//! `command/exec` and related methods.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SandboxPolicy;
use crate::base64::{Base64Bytes, as_text};
use crate::{Stream, TerminalSize};
use outpost_types::members::{object, optional_object, or_default};

/// Params of `command/exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandParams {
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// The process id, chosen by the client; absent if only the result is needed.
    pub process_id: Option<String>,
    /// The working directory, relative to the server's.
    pub cwd: Option<PathBuf>,
    /// Variables to set in the environment; `null` unsets.
    #[serde(default, deserialize_with = "or_default")]
    pub env: BTreeMap<String, Option<String>>,
    /// Runs on a PTY instead of pipes; implies both kinds of streaming.
    #[serde(default, deserialize_with = "or_default")]
    pub tty: bool,
    /// Accepts input by `command/exec/write`.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_stdin: bool,
    /// Streams the output instead of returning it at the end.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_stdout_stderr: bool,
    /// The size of the PTY.
    #[serde(default, deserialize_with = "optional_object")]
    pub size: Option<TerminalSize>,
    /// The cap of each output stream, in bytes; absent for 1 MiB.
    #[schemars(extend("default" = 1_048_576))]
    pub output_bytes_cap: Option<u64>,
    /// Removes the cap.
    #[serde(default, deserialize_with = "or_default")]
    pub disable_output_cap: bool,
    /// The timeout after which the process tree is killed; absent for 10 s.
    #[schemars(range(min = 0), extend("default" = 10_000))]
    pub timeout_ms: Option<i64>,
    /// Disables the timeout.
    #[serde(default, deserialize_with = "or_default")]
    pub disable_timeout: bool,
    /// The sandbox policy.
    #[serde(default, deserialize_with = "optional_object")]
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The name of a sandbox profile, instead of a policy.
    pub permission_profile: Option<String>,
}

/// Result of `command/exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandResult {
    /// The exit code.
    pub exit_code: i32,
    /// The output, unless it was streamed.
    pub stdout: String,
    /// Like `stdout`.
    pub stderr: String,
}

/// Params of `command/exec/write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandWriteParams {
    /// The process.
    pub process_id: String,
    /// The bytes, not decoded yet, because invalid base64 has its own error.
    pub delta_base64: Option<String>,
    /// Closes stdin after the bytes.
    #[serde(default, deserialize_with = "or_default")]
    pub close_stdin: bool,
}

/// Params of `command/exec/resize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandResizeParams {
    /// The process.
    pub process_id: String,
    /// The new size of its PTY.
    #[serde(deserialize_with = "object")]
    pub size: TerminalSize,
}

/// Params of `command/exec/terminate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandTerminateParams {
    /// The process.
    pub process_id: String,
}

/// Params of `command/exec/outputDelta`, which is sent through [`OutputDeltaEncoder`](crate::OutputDeltaEncoder).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandOutput<'a> {
    /// The process.
    pub process_id: Cow<'a, str>,
    /// The stream it was written to.
    pub stream: Stream,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub delta_base64: Cow<'a, [u8]>,
    /// Whether the cap is reached and the rest of the stream is dropped.
    pub cap_reached: bool,
}
