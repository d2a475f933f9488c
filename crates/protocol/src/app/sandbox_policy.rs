//! `sandboxPolicy` of `command/exec`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NativePath;
use outpost_types::members::or_default;
use outpost_types::sandbox::Network;

/// `sandboxPolicy` of `command/exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "camelCase")]
pub enum SandboxPolicy {
    /// The process is not confined.
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
        writable_roots: Vec<NativePath>,
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
    /// The process is already confined by other means.
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
