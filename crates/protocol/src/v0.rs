//! Params, results and notifications of v0, the `command/exec` of the first exec protocol.

use std::borrow::Cow;
use std::collections::BTreeMap;

use outpost_types::optional_member::or_default;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base64::{Base64Bytes, as_text};
use crate::{AbsolutePath, Stream, parse_params};

/// Params of `command/exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0ExecParams {
    /// The process id, chosen by the client.
    pub process_id: String,
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: AbsolutePath,
    /// The whole environment.
    #[serde(default, deserialize_with = "or_default")]
    pub env: BTreeMap<String, String>,
    /// Runs on a PTY, which is the only way to accept input.
    #[serde(default, deserialize_with = "or_default")]
    pub tty: bool,
    /// The number of output bytes to retain. It has no effect, because this dialect has no read
    /// method and notifications are not capped.
    pub output_bytes_cap: Option<u64>,
    /// The first argument that the program sees, if it is not the program's name.
    pub arg0: Option<String>,
}

/// Result of `command/exec`, sent at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0ExecResult {
    /// The id from the request.
    pub process_id: String,
    /// The PID.
    pub pid: u32,
    /// Always true.
    pub running: bool,
    /// Always `null`.
    pub exit_code: Option<i32>,
    /// Always empty; output is sent in notifications.
    pub stdout: Option<String>,
    /// Always empty; output is sent in notifications.
    pub stderr: Option<String>,
}

/// Params of `command/exec/write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0WriteParams {
    /// The process.
    pub process_id: String,
    /// The bytes.
    pub chunk: Base64Bytes,
}

/// Result of `command/exec/write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct V0WriteResult {
    /// Always true.
    pub accepted: bool,
}

/// Params of `command/exec/terminate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0TerminateParams {
    /// The process.
    pub process_id: String,
}

/// Result of `command/exec/terminate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct V0TerminateResult {
    /// Whether it was running and is now being terminated.
    pub running: bool,
}

/// Params of `command/exec/outputDelta`, which is sent through [`OutputDeltaEncoder`](crate::OutputDeltaEncoder).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0Output<'a> {
    /// The process.
    pub process_id: Cow<'a, str>,
    /// The stream it was written to.
    pub stream: Stream,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub chunk: Cow<'a, [u8]>,
}

/// Params of `command/exec/exited`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0Exited {
    /// The process.
    pub process_id: String,
    /// The exit code.
    pub exit_code: i32,
}

/// Whether the params of a `command/exec` belong to this protocol: they have `argv` instead of
/// `command`.
pub fn names_argv(params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Peek {
        argv: Option<IgnoredAny>,
        command: Option<IgnoredAny>,
    }
    parse_params::<Peek>(params).is_ok_and(|peek| peek.argv.is_some() && peek.command.is_none())
}
