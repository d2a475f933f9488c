//! `command/exec` and its siblings.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SandboxPolicy;
use crate::base64::{Base64Bytes, as_text};
use crate::params::{object, optional_object, or_default};
use crate::{Size, StreamName};

/// Params of `command/exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandParams {
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// The client's own key for the process; absent where nothing follows but the answer.
    pub process_id: Option<String>,
    /// Where it starts, seen from where the server was started.
    pub cwd: Option<PathBuf>,
    /// What is laid on top of the environment; `null` unsets.
    #[serde(default, deserialize_with = "or_default")]
    pub env: BTreeMap<String, Option<String>>,
    /// On a PTY instead of pipes; implies both kinds of streaming.
    #[serde(default, deserialize_with = "or_default")]
    pub tty: bool,
    /// Take input by `command/exec/write`.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_stdin: bool,
    /// Tell of output when it comes, not at the end.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_stdout_stderr: bool,
    /// The size of the PTY.
    #[serde(default, deserialize_with = "optional_object")]
    pub size: Option<Size>,
    /// How much of each stream the client gets; absent for 1 MiB.
    #[schemars(extend("default" = 1_048_576))]
    pub output_bytes_cap: Option<u64>,
    /// All of each stream.
    #[serde(default, deserialize_with = "or_default")]
    pub disable_output_cap: bool,
    /// When the tree is killed; absent for 10 s.
    #[schemars(range(min = 0), extend("default" = 10_000))]
    pub timeout_ms: Option<i64>,
    /// Never.
    #[serde(default, deserialize_with = "or_default")]
    pub disable_timeout: bool,
    /// What it is confined to.
    #[serde(default, deserialize_with = "optional_object")]
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The same, by the name of a profile.
    pub permission_profile: Option<String>,
}

/// The answer to `command/exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandResult {
    /// How it ended.
    pub exit_code: i32,
    /// What it wrote, unless that was streamed.
    pub stdout: String,
    /// As `stdout`.
    pub stderr: String,
}

/// Params of `command/exec/write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandWriteParams {
    /// Which process.
    pub process_id: String,
    /// The bytes. Not decoded here: base64 that is none has an error of its own.
    pub delta_base64: Option<String>,
    /// End the input after the bytes.
    #[serde(default, deserialize_with = "or_default")]
    pub close_stdin: bool,
}

/// Params of `command/exec/resize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandResizeParams {
    /// Which process.
    pub process_id: String,
    /// The new size of its PTY.
    #[serde(deserialize_with = "object")]
    pub size: Size,
}

/// Params of `command/exec/terminate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandTerminateParams {
    /// Which process.
    pub process_id: String,
}

/// Params of `command/exec/outputDelta`, which is sent through [`DeltaFrame`](crate::DeltaFrame).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandOutput<'a> {
    /// Which process.
    pub process_id: Cow<'a, str>,
    /// Where it was written.
    pub stream: StreamName,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub delta_base64: Cow<'a, [u8]>,
    /// Whether nothing more of this stream is told.
    pub cap_reached: bool,
}
