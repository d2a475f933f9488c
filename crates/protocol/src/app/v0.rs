//! `command/exec` as the first exec protocol had it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base64::as_text;
use crate::params::{or_default, parse_params};
use crate::{Base64Bytes, NativePath, StreamName};

/// Params of `command/exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0ExecParams {
    /// The client's own key for the process.
    pub process_id: String,
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub argv: Vec<String>,
    /// Where it starts.
    pub cwd: NativePath,
    /// The whole environment.
    #[serde(default, deserialize_with = "or_default")]
    pub env: BTreeMap<String, String>,
    /// On a PTY, which is also the only way to have input.
    #[serde(default, deserialize_with = "or_default")]
    pub tty: bool,
    /// How much of its output the server keeps. Nothing reads it back, and what is told of it is
    /// not cut.
    pub output_bytes_cap: Option<u64>,
    /// What the program sees as its own name.
    pub arg0: Option<String>,
}

/// The answer to `command/exec`: it has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0ExecResult {
    /// As it was asked for.
    pub process_id: String,
    /// The number the operating system gave it.
    pub pid: u32,
    /// Always true.
    pub running: bool,
    /// Never known yet.
    pub exit_code: Option<i32>,
    /// Comes in notifications.
    pub stdout: Option<String>,
    /// Comes in notifications.
    pub stderr: Option<String>,
}

/// Params of `command/exec/write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0WriteParams {
    /// Which process.
    pub process_id: String,
    /// The bytes.
    pub chunk: Base64Bytes,
}

/// The answer to `command/exec/write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct V0WriteResult {
    /// Always true.
    pub accepted: bool,
}

/// Params of `command/exec/terminate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0TerminateParams {
    /// Which process.
    pub process_id: String,
}

/// The answer to `command/exec/terminate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct V0TerminateResult {
    /// Whether it was running, and is now being ended.
    pub running: bool,
}

/// Params of `command/exec/outputDelta`, which is sent through [`DeltaFrame`](crate::DeltaFrame).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0Output<'a> {
    /// Which process.
    pub process_id: Cow<'a, str>,
    /// Where it was written.
    pub stream: StreamName,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub chunk: Cow<'a, [u8]>,
}

/// Params of `command/exec/exited`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct V0Exited {
    /// Which process.
    pub process_id: String,
    /// How it ended.
    pub exit_code: i32,
}

/// Whether the params of a `command/exec` are of this kind: `argv` where others have `command`.
pub fn names_argv(params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Peek {
        argv: Option<IgnoredAny>,
        command: Option<IgnoredAny>,
    }
    parse_params::<Peek>(params).is_ok_and(|peek| peek.argv.is_some() && peek.command.is_none())
}
