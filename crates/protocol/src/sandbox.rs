//! What a client wants a process to be confined to.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PathUri;
use crate::app::NetworkAccess;
use crate::params::{object, or_default};

/// `sandbox` of `process/start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxParams {
    /// What is wanted.
    #[serde(deserialize_with = "object")]
    pub permissions: Permissions,
    /// Where relative patterns start; absent for where the process starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathUri>,
    /// What `project_roots` stands for.
    #[serde(default, deserialize_with = "or_default")]
    pub workspace_roots: Vec<PathUri>,
    /// Of no meaning here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_sandbox_level: Option<String>,
    /// Of no meaning here: how it is enforced is the server's affair.
    #[serde(default, deserialize_with = "or_default")]
    pub use_legacy_landlock: bool,
}

/// `permissions` of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "camelCase")]
pub enum Permissions {
    /// This server confines it, and must enforce all of it or not start the process.
    #[serde(rename_all = "snake_case")]
    Managed {
        /// Which files it may use.
        #[serde(deserialize_with = "object")]
        file_system: FileSystemPermissions,
        /// Whether it may use the network.
        #[serde(default, deserialize_with = "or_default")]
        network: NetworkAccess,
    },
    /// Nobody confines it.
    Disabled,
    /// Somebody else already does.
    External,
}

crate::words::tagged!(Permissions, "type");

/// Which files a process may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "snake_case")]
pub enum FileSystemPermissions {
    /// Those that are named.
    Restricted {
        /// In any order: the most specific one decides about a path, and of those that name the
        /// same path `deny` before `write` before `read`.
        #[serde(default, deserialize_with = "or_default")]
        entries: Vec<FileSystemEntry>,
        /// How many directories deep patterns are looked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        glob_scan_max_depth: Option<u64>,
    },
    /// All that its user may.
    Unrestricted,
}

crate::words::tagged!(FileSystemPermissions, "type");

/// A place, and what may be done there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSystemEntry {
    /// Where.
    #[serde(deserialize_with = "object")]
    pub path: FileSystemPath,
    /// What.
    pub access: FileSystemAccess,
    /// What it means that nothing is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_path_behavior: Option<MissingPathBehavior>,
}

/// Where an entry applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "snake_case")]
pub enum FileSystemPath {
    /// A path.
    Path {
        /// At and below it.
        path: PathUri,
    },
    /// Something that each host has somewhere else.
    Special {
        /// What.
        #[serde(deserialize_with = "object")]
        value: SpecialPath,
    },
    /// Whatever matches; such entries can only deny.
    GlobPattern {
        /// Relative to `cwd`, absolute, or behind `codex-project-roots://`.
        pattern: String,
    },
}

crate::words::tagged!(FileSystemPath, "type");

/// A place that goes by its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum SpecialPath {
    /// Everything.
    Root,
    /// What a dynamic program needs to run.
    Minimal,
    /// Each of the workspace roots.
    #[serde(alias = "current_working_directory")]
    ProjectRoots {
        /// Something below each of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        subpath: Option<PathBuf>,
    },
    /// `$TMPDIR` of the child.
    Tmpdir,
    /// `/tmp`.
    SlashTmp,
    /// A word that the client doesn't know either. It is ignored, with a warning.
    Unknown {
        /// The word.
        path: String,
        /// Something below it.
        #[serde(skip_serializing_if = "Option::is_none")]
        subpath: Option<PathBuf>,
    },
}

crate::words::tagged!(SpecialPath, "kind");

/// What may be done somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum FileSystemAccess {
    /// Look.
    Read,
    /// Look and change.
    Write,
    /// Neither. `none` is the old spelling.
    #[serde(alias = "none")]
    Deny,
}

crate::words::word!(FileSystemAccess);

/// What it means that nothing is at an entry's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum MissingPathBehavior {
    /// No error.
    Skip,
}

crate::words::word!(MissingPathBehavior);
