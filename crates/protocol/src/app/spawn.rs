//! `process/spawn` and its siblings.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base64::{Base64Bytes, as_text};
use crate::params::{object, optional_object, or_default};
use crate::{NativePath, Setting, Size, StreamName};

/// Params of `process/spawn`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnParams {
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// The client's own key for the process.
    #[schemars(length(min = 1))]
    pub process_handle: String,
    /// Where it starts.
    pub cwd: NativePath,
    /// What is laid on top of the server's environment; `null` unsets.
    #[serde(default, deserialize_with = "or_default")]
    pub env: BTreeMap<String, Option<String>>,
    /// On a PTY instead of pipes; implies both kinds of streaming.
    #[serde(default, deserialize_with = "or_default")]
    pub tty: bool,
    /// Take input by `process/writeStdin`.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_stdin: bool,
    /// Tell of output when it comes, not at the end.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_stdout_stderr: bool,
    /// The size of the PTY.
    #[serde(default, deserialize_with = "optional_object")]
    pub size: Option<Size>,
    /// How much of each stream the client gets; absent for 1 MiB, `null` for all of it.
    #[serde(default, skip_serializing_if = "Setting::is_unspecified")]
    #[schemars(extend("default" = 1_048_576))]
    pub output_bytes_cap: Setting<u64>,
    /// When the tree is killed; absent for 10 s, `null` for never.
    #[serde(default, skip_serializing_if = "Setting::is_unspecified")]
    #[schemars(range(min = 0), extend("default" = 10_000))]
    pub timeout_ms: Setting<i64>,
}

/// Params of `process/writeStdin`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WriteStdinParams {
    /// Which process.
    pub process_handle: String,
    /// The bytes. Not decoded here: base64 that is none has an error of its own.
    pub delta_base64: Option<String>,
    /// End the input after the bytes.
    #[serde(default, deserialize_with = "or_default")]
    pub close_stdin: bool,
}

/// Params of `process/resizePty`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResizePtyParams {
    /// Which process.
    pub process_handle: String,
    /// The new size of its PTY.
    #[serde(deserialize_with = "object")]
    pub size: Size,
}

/// Params of `process/kill`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KillParams {
    /// Which process.
    pub process_handle: String,
}

/// Params of `process/outputDelta`, which is sent through [`DeltaFrame`](crate::DeltaFrame).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnOutput<'a> {
    /// Which process.
    pub process_handle: Cow<'a, str>,
    /// Where it was written.
    pub stream: StreamName,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub delta_base64: Cow<'a, [u8]>,
    /// Whether nothing more of this stream is told.
    pub cap_reached: bool,
}

/// Params of the `process/exited` of a spawned process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnExited {
    /// Which process.
    pub process_handle: String,
    /// How it ended.
    pub exit_code: i32,
    /// What it wrote, unless that was streamed.
    pub stdout: String,
    /// Whether there was more, or might have been.
    pub stdout_cap_reached: bool,
    /// As `stdout`.
    pub stderr: String,
    /// As `stdout_cap_reached`.
    pub stderr_cap_reached: bool,
    /// Whether somebody else held its output open for longer than it was waited for.
    pub output_drain_timed_out: bool,
}
