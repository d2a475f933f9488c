//! `environment/info` and `environment/status`: what it is like where the processes run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PathUri, SandboxType, params::or_default};

/// The answer to `environment/info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentInfo {
    /// The shell that commands of the user are meant for.
    pub shell: Shell,
    /// The server's working directory.
    pub cwd: PathUri,
    /// The user's home directory, if there is one.
    pub user_home_dir: Option<PathUri>,
    /// `linux`, `macos`, …
    pub platform_os: String,
    /// `$TMPDIR`, if it is set.
    pub temporary_directories: Vec<PathUri>,
    /// Where temporary files go.
    pub temp_dir: PathUri,
    /// The version of the server.
    pub executor_version: String,
    /// How whole process trees are ended here. Other servers don't say.
    #[serde(default)]
    pub process_trees: ProcessTrees,
    /// Whether processes can be confined here, found out when the server started. Other servers
    /// don't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSupport>,
    /// What else can be asked of this server.
    pub capabilities: EnvironmentCapabilities,
}

/// The answer to `environment/info` as a client reads it: a released server says which shell there
/// is, and sometimes where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Surroundings {
    /// The shell that commands of the user are meant for.
    pub shell: Shell,
    /// The server's working directory.
    pub cwd: Option<PathUri>,
    /// The user's home directory, if there is one.
    pub user_home_dir: Option<PathUri>,
    /// `linux`, `macos`, …
    pub platform_os: Option<String>,
    /// `$TMPDIR`, if it is set.
    #[serde(default, deserialize_with = "or_default")]
    pub temporary_directories: Vec<PathUri>,
    /// Where temporary files go.
    pub temp_dir: Option<PathUri>,
    /// The version of the server.
    pub executor_version: Option<String>,
    /// How whole process trees are ended there.
    #[serde(default, deserialize_with = "or_default")]
    pub process_trees: ProcessTrees,
    /// Whether processes can be confined there.
    pub sandbox: Option<SandboxSupport>,
    /// What else can be asked of the server.
    #[serde(default, deserialize_with = "or_default")]
    pub capabilities: EnvironmentCapabilities,
}

impl From<EnvironmentInfo> for Surroundings {
    fn from(info: EnvironmentInfo) -> Self {
        Surroundings {
            shell: info.shell,
            cwd: Some(info.cwd),
            user_home_dir: info.user_home_dir,
            platform_os: Some(info.platform_os),
            temporary_directories: info.temporary_directories,
            temp_dir: Some(info.temp_dir),
            executor_version: Some(info.executor_version),
            process_trees: info.process_trees,
            sandbox: info.sandbox,
            capabilities: info.capabilities,
        }
    }
}

/// What keeps the processes of a tree together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum ProcessTrees {
    /// A cgroup for each process.
    Cgroup,
    /// A process above each one that inherits its orphans.
    Keeper,
    /// Process groups and what the host tells about descendants: a daemon may escape.
    #[default]
    Group,
}

crate::words::word!(ProcessTrees);

/// Whether processes can be confined, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxSupport {
    /// What `sandboxType` of a confined process is; `none` if nothing can be enforced.
    #[serde(rename = "type")]
    pub kind: SandboxType,
    /// What the operator has chosen.
    pub level: SandboxLevel,
    /// Why nothing can be enforced, and what to do about it.
    pub reason: Option<String>,
}

/// By what means processes are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum SandboxLevel {
    /// Namespaces, with seccomp and Landlock inside.
    Namespaces,
    /// Landlock and seccomp alone: a weaker promise.
    Landlock,
}

crate::words::word!(SandboxLevel);

/// A shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shell {
    /// `bash`, `zsh` or `sh`.
    pub name: String,
    /// Where it is, a native path.
    pub path: String,
}

/// Extensions that the released clients ask for by name. True only for what works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentCapabilities {
    /// Launching a network proxy for a process.
    pub network_proxy_launch: bool,
    /// Confined discovery of what the host offers.
    pub capability_discovery_sandbox: bool,
    /// `environmentConfig/read`.
    pub environment_config_read: bool,
    /// `valueEnvVar` in headers of `http/request`.
    pub http_header_env_vars: bool,
    /// `fs/open` and its siblings with a sandbox.
    pub sandboxed_file_streaming: bool,
    /// The second form of shell snapshots.
    pub shell_snapshot_v2: bool,
}

/// The answer to `environment/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusResult {
    /// How it is.
    pub status: EnvironmentStatus,
}

/// How the environment is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum EnvironmentStatus {
    /// Processes can be started.
    #[default]
    Ready,
}

crate::words::word!(EnvironmentStatus);
