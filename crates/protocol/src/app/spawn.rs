//! `process/spawn` and related methods.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base64::{Base64Bytes, as_text};
use crate::{NativePath, Setting, Stream, TerminalSize};
use outpost_types::members::{object, optional_object, or_default};

/// Params of `process/spawn`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnParams {
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// The process id, chosen by the client.
    #[schemars(length(min = 1))]
    pub process_handle: String,
    /// The working directory.
    pub cwd: NativePath,
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
    #[serde(default, skip_serializing_if = "Setting::is_unspecified")]
    #[schemars(extend("default" = 1_048_576))]
    pub output_bytes_cap: Setting<u64>,
    /// The timeout after which the process tree is killed; absent for 10 s, `null` for none.
    #[serde(default, skip_serializing_if = "Setting::is_unspecified")]
    #[schemars(range(min = 0), extend("default" = 10_000))]
    pub timeout_ms: Setting<i64>,
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
}
