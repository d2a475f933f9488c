//! What a `command/exec` may be confined to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NativePath;
use crate::params::or_default;

/// `sandboxPolicy` of `command/exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "camelCase")]
pub enum SandboxPolicy {
    /// Not confined.
    DangerFullAccess,
    /// Reads everything, writes nothing.
    #[serde(rename_all = "camelCase")]
    ReadOnly {
        /// Whether it may use the network.
        #[serde(default, deserialize_with = "or_default")]
        network_access: bool,
    },
    /// Writes below some folders.
    #[serde(rename_all = "camelCase")]
    WorkspaceWrite {
        /// Folders besides the working directory.
        #[serde(default, deserialize_with = "or_default")]
        writable_roots: Vec<NativePath>,
        /// Whether it may use the network.
        #[serde(default, deserialize_with = "or_default")]
        network_access: bool,
        /// Whether `$TMPDIR` is not among the folders.
        #[serde(default, deserialize_with = "or_default")]
        exclude_tmpdir_env_var: bool,
        /// Whether `/tmp` is not among the folders.
        #[serde(default, deserialize_with = "or_default")]
        exclude_slash_tmp: bool,
    },
    /// Somebody else confines it already.
    #[serde(rename_all = "camelCase")]
    ExternalSandbox {
        /// What that somebody lets through.
        #[serde(default, deserialize_with = "or_default")]
        network_access: NetworkAccess,
    },
}

crate::words::tagged!(SandboxPolicy, "type");

/// Whether there is a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum NetworkAccess {
    /// None.
    #[default]
    Restricted,
    /// All of it.
    Enabled,
}

crate::words::word!(NetworkAccess);

impl SandboxPolicy {
    /// Its `type` on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::DangerFullAccess => "dangerFullAccess",
            Self::ReadOnly { .. } => "readOnly",
            Self::WorkspaceWrite { .. } => "workspaceWrite",
            Self::ExternalSandbox { .. } => "externalSandbox",
        }
    }
}
