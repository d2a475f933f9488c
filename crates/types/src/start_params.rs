//! Requests to start a process.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::members::{optional_object, or_default};
use crate::sandbox::SandboxParams;
use crate::{EnvPolicy, PathUri, TerminalSize};

/// Params of `process/start`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartParams {
    /// The id of the process, chosen by the client.
    #[schemars(length(min = 1, max = 256))]
    pub process_id: String,
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: PathUri,
    /// The whole environment, or variables added to those that `env_policy` selects.
    #[serde(default, deserialize_with = "or_default")]
    pub env: BTreeMap<String, String>,
    /// The variables to inherit from the server; absent for none.
    #[serde(default, deserialize_with = "optional_object")]
    pub env_policy: Option<EnvPolicy>,
    /// Runs the process on a PTY instead of pipes.
    #[serde(default, deserialize_with = "or_default")]
    pub tty: bool,
    /// Opens stdin, if there is no PTY.
    #[serde(default, deserialize_with = "or_default")]
    pub pipe_stdin: bool,
    /// The first argument that the program sees, if it is not the program's name.
    pub arg0: Option<String>,
    /// The sandbox; absent to run unconfined.
    #[serde(default, deserialize_with = "optional_object")]
    pub sandbox: Option<SandboxParams>,
    /// Allows only the network that `managed_network` describes.
    #[serde(default, deserialize_with = "or_default")]
    pub enforce_managed_network: bool,
    /// Not supported yet, and ignored.
    pub managed_network: Option<serde_json::Value>,
    /// Data that is kept with the process and never interpreted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// The size of the PTY.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub size: Option<TerminalSize>,
    /// The time after which the process tree is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The number of output bytes to retain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retain_bytes: Option<u64>,
    /// The grace period before a terminated process is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_grace_ms: Option<u64>,
}
