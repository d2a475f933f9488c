//! `environment/info` and `environment/status`: the host of the server.

use outpost_types::optional_member::or_default;
use outpost_types::{
    EnvironmentCapabilities, EnvironmentInfo, LimitSupport, PathUri, Shell, TreeKind,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SandboxSupport;

/// Result of `environment/info` as a client reads it. Released servers send the shell, and some of
/// them the working directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostInfo {
    /// The shell for the user's commands.
    pub shell: Shell,
    /// The version of the server.
    pub executor_version: Option<String>,
    /// An identifier of the server's program.
    pub provider_id: Option<String>,
    /// The server's working directory.
    pub cwd: Option<PathUri>,
    /// The user's home directory, if there is one.
    pub user_home_dir: Option<PathUri>,
    /// The operating system: `linux`, `macos`, …
    pub platform_os: Option<String>,
    /// `$TMPDIR`, if it is set.
    #[serde(default, deserialize_with = "or_default")]
    pub temporary_directories: Vec<PathUri>,
    /// The directory for temporary files.
    pub temp_dir: Option<PathUri>,
    /// The mechanism that tracks process trees.
    #[serde(default, deserialize_with = "or_default")]
    pub process_trees: TreeKind,
    /// The limits of a process that can be enforced.
    pub limits: Option<LimitSupport>,
    /// The sandbox support.
    pub sandbox: Option<SandboxSupport>,
    /// Optional features of the server.
    #[serde(default, deserialize_with = "or_default")]
    pub capabilities: EnvironmentCapabilities,
}

impl From<EnvironmentInfo> for HostInfo {
    fn from(info: EnvironmentInfo) -> Self {
        HostInfo {
            shell: info.shell,
            executor_version: Some(info.executor_version),
            provider_id: Some(info.provider_id),
            cwd: Some(info.cwd),
            user_home_dir: info.user_home_dir,
            platform_os: Some(info.platform_os),
            temporary_directories: info.temporary_directories,
            temp_dir: Some(info.temp_dir),
            process_trees: info.process_trees,
            limits: info.limits,
            sandbox: info.sandbox,
            capabilities: info.capabilities,
        }
    }
}

/// Result of `environment/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusResult {
    /// The status.
    pub status: EnvironmentStatus,
}

/// The status of the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum EnvironmentStatus {
    /// Processes can be started.
    #[default]
    Ready,
}

outpost_types::string_enum!(EnvironmentStatus);
