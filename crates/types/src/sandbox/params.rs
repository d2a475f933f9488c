//! Sandbox requests, as clients send them.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FileSystem, Network, Policy};
use crate::PathUri;
use crate::members::{object, or_default};

/// `sandbox` of `process/start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxParams {
    /// The permissions.
    #[serde(deserialize_with = "object")]
    pub permissions: Confinement,
    /// The base of relative patterns; absent for the working directory of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathUri>,
    /// The directories that `project_roots` stands for.
    #[serde(default, deserialize_with = "or_default")]
    pub workspace_roots: Vec<PathUri>,
    /// Ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_sandbox_level: Option<String>,
    /// Ignored: the operator chooses the means of enforcement.
    #[serde(default, deserialize_with = "or_default")]
    pub use_legacy_landlock: bool,
}

/// `permissions` of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "camelCase")]
pub enum Confinement {
    /// The executor confines the process, and doesn't start it if it can't enforce everything.
    #[serde(rename_all = "snake_case")]
    Managed {
        /// The files that it may use.
        #[serde(deserialize_with = "object")]
        file_system: FileSystem,
        /// Whether it may use the network.
        #[serde(default, deserialize_with = "or_default")]
        network: Network,
    },
    /// The process is not confined.
    Disabled,
    /// The process is already confined by other means.
    External,
}

crate::tagged_enum!(Confinement, "type");

impl SandboxParams {
    /// The policy to enforce on a process that starts in `cwd`. Returns `None` if this executor is
    /// not to confine it.
    #[must_use]
    pub fn into_policy(self, cwd: &Path) -> Option<Policy> {
        let Confinement::Managed {
            file_system,
            network,
        } = self.permissions
        else {
            return None;
        };
        let roots = self.workspace_roots.into_iter();
        Some(Policy {
            file_system,
            network,
            cwd: self.cwd.map_or_else(|| cwd.to_owned(), PathUri::into_path),
            workspace_roots: roots.map(PathUri::into_path).collect(),
        })
    }
}
