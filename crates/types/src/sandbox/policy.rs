//! Sandbox policies: which files and network a process may use, and what a host can enforce.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Access, Entry, SpecialPath};
use crate::PathUri;
use crate::optional_member::{object, or_default};

/// `sandbox` of `process/start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxParams {
    /// The permissions.
    #[serde(deserialize_with = "object")]
    pub permissions: SandboxPermissions,
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
pub enum SandboxPermissions {
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
    /// The process is not sandboxed.
    Disabled,
    /// The process is already sandboxed by other means.
    External,
}

crate::tagged_enum!(SandboxPermissions, "type");

impl SandboxParams {
    /// Whether this executor is not to confine the process.
    #[must_use]
    pub fn asks_for_none(&self) -> bool {
        !matches!(self.permissions, SandboxPermissions::Managed { .. })
    }

    /// The policy to enforce on a process that starts in `cwd`. Returns `None` if this executor is
    /// not to confine it.
    #[must_use]
    pub fn into_policy(self, cwd: &Path) -> Option<Policy> {
        let SandboxPermissions::Managed {
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

/// The permissions of a sandboxed process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The files that it may use.
    pub file_system: FileSystem,
    /// Whether it may use the network.
    pub network: Network,
    /// The base of relative patterns. Absolute.
    pub cwd: PathBuf,
    /// The directories that [`SpecialPath::ProjectRoots`] stands for. Absolute; may be empty.
    pub workspace_roots: Vec<PathBuf>,
}

impl Policy {
    /// Reads everything, writes nothing, no network.
    #[must_use]
    pub fn read_only(cwd: &Path) -> Policy {
        let root = Entry::special(SpecialPath::Root, Access::Read);
        Policy {
            file_system: FileSystem::restricted(vec![root]),
            network: Network::Restricted,
            cwd: cwd.to_owned(),
            workspace_roots: vec![cwd.to_owned()],
        }
    }
}

/// The files that a process may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "snake_case")]
#[schemars(rename = "FileSystemPermissions")]
pub enum FileSystem {
    /// Only the files that entries grant.
    Restricted(Restricted),
    /// All files that its user may use.
    Unrestricted,
}

crate::tagged_enum!(FileSystem, "type");

impl FileSystem {
    /// Only the files that these entries grant.
    #[must_use]
    pub fn restricted(entries: Vec<Entry>) -> Self {
        FileSystem::Restricted(Restricted {
            entries,
            glob_scan_max_depth: None,
        })
    }
}

/// Entries that grant and deny access to files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Restricted {
    /// The entries, in any order. The most specific path decides. For the same path, `deny` takes
    /// precedence over `write`, and `write` over `read`.
    #[serde(default, deserialize_with = "or_default")]
    pub entries: Vec<Entry>,
    /// The number of directory levels in which patterns are searched; absent for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob_scan_max_depth: Option<u64>,
}

/// Whether a process may use the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
#[schemars(rename = "NetworkAccess")]
pub enum Network {
    /// No network.
    #[default]
    Restricted,
    /// The network of the host.
    Enabled,
}

crate::string_enum!(Network);

/// Describes whether a host can confine processes, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxSupport {
    /// The `sandboxType` of a sandboxed process; `none` if nothing can be enforced.
    #[serde(rename = "type")]
    pub kind: SandboxType,
    /// The level that the operator chose.
    pub level: Level,
    /// The reason why nothing can be enforced, and the remedy.
    pub reason: Option<String>,
}

/// The mechanism that confines a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum SandboxType {
    /// The process is not sandboxed.
    #[default]
    None,
    /// Linux, at any level.
    LinuxSeccomp,
    /// macOS.
    MacosSeatbelt,
    /// Windows.
    WindowsRestrictedToken,
}

crate::string_enum!(SandboxType);

/// The mechanisms that confine processes. The operator chooses; there is no fallback between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
#[schemars(rename = "SandboxLevel")]
pub enum Level {
    /// Namespaces, with seccomp and Landlock inside: enforces everything.
    #[default]
    Namespaces,
    /// Landlock and seccomp without namespaces, for hosts that forbid namespaces. Enforces less.
    Landlock,
}

crate::string_enum!(Level);
