//! Sandbox policies: which files and network a process may use.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Access, Entry, SpecialPath};
use crate::members::or_default;

/// The permissions of a confined process.
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
