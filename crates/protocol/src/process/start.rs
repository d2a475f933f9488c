//! `process/start`: a process is asked for.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::params::{optional_object, or_default};
use crate::{EnvPolicy, PathUri, SandboxParams};

/// Params of `process/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartParams {
    /// The client's own key for the process, not an OS pid.
    #[schemars(length(min = 1, max = 256))]
    pub process_id: String,
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub argv: Vec<String>,
    /// Where it starts.
    pub cwd: PathUri,
    /// The whole environment, or what is laid on top of what `env_policy` gives.
    #[serde(default, deserialize_with = "or_default")]
    pub env: BTreeMap<String, String>,
    /// What of the server's environment it gets; absent for nothing.
    #[serde(default, deserialize_with = "optional_object")]
    pub env_policy: Option<EnvPolicy>,
    /// On a PTY instead of pipes.
    #[serde(default, deserialize_with = "or_default")]
    pub tty: bool,
    /// Keep stdin open, without a PTY.
    #[serde(default, deserialize_with = "or_default")]
    pub pipe_stdin: bool,
    /// What the program sees as its own name.
    pub arg0: Option<String>,
    /// What it is confined to.
    #[serde(default, deserialize_with = "optional_object")]
    pub sandbox: Option<SandboxParams>,
    /// Allow no network but what `managed_network` names.
    #[serde(default, deserialize_with = "or_default")]
    pub enforce_managed_network: bool,
    /// Not read yet.
    pub managed_network: Option<serde_json::Value>,
    /// Kept with the process, and never looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// The size of the PTY.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub size: Option<Size>,
    /// When the tree is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How much output to retain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retain_bytes: Option<u64>,
    /// How long it is asked to end before it is made to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_grace_ms: Option<u64>,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Size {
    /// Lines.
    #[schemars(range(min = 1))]
    pub rows: u16,
    /// Characters in a line.
    #[schemars(range(min = 1))]
    pub cols: u16,
}

/// The answer to `process/start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartResult {
    /// As it was asked for.
    pub process_id: String,
    /// How the process is confined. Older servers don't say.
    #[serde(default)]
    pub sandbox_type: SandboxType,
}

/// By what means a process is confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum SandboxType {
    /// Not at all.
    #[default]
    None,
    /// Linux, by whichever means were chosen.
    LinuxSeccomp,
    /// macOS.
    MacosSeatbelt,
    /// Windows.
    WindowsRestrictedToken,
}

crate::words::word!(SandboxType);
