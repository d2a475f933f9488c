//! Params, results and notifications of the dialects whose processes belong to a connection:
//! `process/spawn`, whose result is sent at once, and `command/exec`, whose result is sent at the exit. See
//! also `v0`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use outpost_types::optional_member::{object, optional_object, or_default};
use outpost_types::{
    EndedBy, NetworkPolicyParams, ResourceLimits, ResourceUsage, sandbox::Network,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base64::{Base64Bytes, as_text};
use crate::{AbsolutePath, Override, Stream, TerminalSize};

/// Params of `process/spawn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnParams {
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// The process id, chosen by the client.
    #[schemars(length(min = 1))]
    pub process_handle: String,
    /// The working directory.
    pub cwd: AbsolutePath,
    /// Variables to set on top of the server's environment; `null` unsets.
    #[serde(default, deserialize_with = "or_default")]
    pub env: BTreeMap<String, Option<String>>,
    /// Runs on a PTY instead of pipes; implies both kinds of streaming.
    #[serde(default, deserialize_with = "or_default")]
    pub tty: bool,
    /// Accepts input by `process/writeStdin`.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_stdin: bool,
    /// Streams the output instead of returning it at the end.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_stdout_stderr: bool,
    /// The size of the PTY.
    #[serde(default, deserialize_with = "optional_object")]
    pub size: Option<TerminalSize>,
    /// The cap of each output stream, in bytes; absent for 1 MiB, `null` for none.
    #[serde(default, skip_serializing_if = "Override::is_unspecified")]
    #[schemars(with = "Option<u64>", extend("default" = 1_048_576))]
    pub output_bytes_cap: Override<u64>,
    /// The timeout after which the process tree is killed; absent for 10 s, `null` for none.
    #[serde(default, skip_serializing_if = "Override::is_unspecified")]
    #[schemars(with = "Option<i64>", range(min = 0), extend("default" = 10_000))]
    pub timeout_ms: Override<i64>,
    /// Limits on its resources.
    #[serde(default, deserialize_with = "optional_object")]
    pub limits: Option<ResourceLimits>,
}

/// Params of `process/writeStdin`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WriteStdinParams {
    /// The process.
    pub process_handle: String,
    /// The bytes, not decoded yet, because invalid base64 has its own error.
    pub delta_base64: Option<String>,
    /// Closes stdin after the bytes.
    #[serde(default, deserialize_with = "or_default")]
    pub close_stdin: bool,
}

/// Params of `process/resizePty`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResizePtyParams {
    /// The process.
    pub process_handle: String,
    /// The new size of its PTY.
    #[serde(deserialize_with = "object")]
    pub size: TerminalSize,
}

/// Params of `process/kill`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KillParams {
    /// The process.
    pub process_handle: String,
}

/// Params of `process/outputDelta`, which is sent through [`OutputDeltaEncoder`](crate::OutputDeltaEncoder).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnOutput<'a> {
    /// The process.
    pub process_handle: Cow<'a, str>,
    /// The stream it was written to.
    pub stream: Stream,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub delta_base64: Cow<'a, [u8]>,
    /// Whether the cap is reached and the rest of the stream is dropped.
    pub cap_reached: bool,
}

/// Params of the `process/exited` of a spawned process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnExited {
    /// The process.
    pub process_handle: String,
    /// The exit code.
    pub exit_code: i32,
    /// The output, unless it was streamed.
    pub stdout: String,
    /// Whether the cap was reached.
    pub stdout_cap_reached: bool,
    /// Like `stdout`.
    pub stderr: String,
    /// Like `stdout_cap_reached`.
    pub stderr_cap_reached: bool,
    /// Whether a descendant still held the output open when the drain timeout expired.
    pub output_drain_timed_out: bool,
    /// The cause of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// The resources that it has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ResourceUsage>,
}

/// Params of `command/exec`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Limits on its resources.
    #[serde(default, deserialize_with = "optional_object")]
    pub limits: Option<ResourceLimits>,
    /// The policy of its network, instead of the network of the sandbox.
    #[serde(default, deserialize_with = "optional_object")]
    pub network: Option<NetworkPolicyParams>,
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
    /// Output was dropped, beyond the cap or for lack of memory. Absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stdout_cap_reached: bool,
    /// Like `stdout_cap_reached`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stderr_cap_reached: bool,
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

/// `sandboxPolicy` of `command/exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "camelCase")]
pub enum SandboxPolicy {
    /// The process is not sandboxed.
    DangerFullAccess,
    /// Reads everything, writes nothing.
    #[serde(rename_all = "camelCase")]
    ReadOnly {
        /// Whether it may use the network.
        #[serde(default, deserialize_with = "or_default")]
        network_access: bool,
    },
    /// Reads everything, writes below some directories.
    #[serde(rename_all = "camelCase")]
    WorkspaceWrite {
        /// Writable directories besides the working directory.
        #[serde(default, deserialize_with = "or_default")]
        writable_roots: Vec<AbsolutePath>,
        /// Whether it may use the network.
        #[serde(default, deserialize_with = "or_default")]
        network_access: bool,
        /// Excludes `$TMPDIR` from the writable directories.
        #[serde(default, deserialize_with = "or_default")]
        exclude_tmpdir_env_var: bool,
        /// Excludes `/tmp` from the writable directories.
        #[serde(default, deserialize_with = "or_default")]
        exclude_slash_tmp: bool,
    },
    /// The process is already sandboxed by other means.
    #[serde(rename_all = "camelCase")]
    ExternalSandbox {
        /// Whether that sandbox allows the network.
        #[serde(default, deserialize_with = "or_default")]
        network_access: Network,
    },
}

outpost_types::tagged_enum!(SandboxPolicy, "type");

impl SandboxPolicy {
    /// The `type` on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::DangerFullAccess => "dangerFullAccess",
            Self::ReadOnly { .. } => "readOnly",
            Self::WorkspaceWrite { .. } => "workspaceWrite",
            Self::ExternalSandbox { .. } => "externalSandbox",
        }
    }
}
