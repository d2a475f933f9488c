//! Facts about the host of an executor.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sandbox::SandboxSupport;
use crate::{LimitSupport, PathUri};

/// Result of `environment/info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentInfo {
    /// The shell for the user's commands.
    pub shell: Shell,
    /// The version of the server.
    pub executor_version: String,
    /// An identifier of the server's program, the same for each of its runs.
    pub provider_id: String,
    /// The server's working directory.
    pub cwd: PathUri,
    /// The user's home directory, if there is one.
    pub user_home_dir: Option<PathUri>,
    /// The operating system: `linux`, `macos`, …
    pub platform_os: String,
    /// `$TMPDIR`, if it is set.
    pub temporary_directories: Vec<PathUri>,
    /// The directory for temporary files.
    pub temp_dir: PathUri,
    /// The mechanism that tracks process trees. Other servers don't send it.
    #[serde(default)]
    pub process_trees: TreeKind,
    /// The sandbox support, checked when the server started. Other servers don't send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSupport>,
    /// The limits of a process that can be enforced. Other servers don't send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitSupport>,
    /// Optional features of the server.
    pub capabilities: EnvironmentCapabilities,
}

/// A shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shell {
    /// `bash`, `zsh` or `sh`.
    pub name: String,
    /// The native path of the program.
    pub path: String,
}

/// Extensions that released clients ask for by name. True only for those that work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentCapabilities {
    /// `networkProxy` of `process/start`.
    pub network_proxy_launch: bool,
    /// `reviewDomains` of `networkProxy`.
    pub network_proxy_review_domains: bool,
    /// `credentialMasking` of `networkProxy`.
    pub credential_masking: bool,
    /// `credentialProviders` of `networkProxy`.
    pub credential_masking_custom_providers: bool,
    /// `sandbox` of `capabilityRoots/discoverV1` and `capabilities/discoverV2`.
    pub capability_discovery_sandbox: bool,
    /// `fs/watchMissing`.
    pub fs_watch_missing: bool,
    /// `capabilities/discoverV2`.
    pub capability_discovery_v2: bool,
    /// `environmentConfig/read`.
    pub environment_config_read: bool,
    /// `valueEnvVar` in headers of `http/request`.
    pub http_header_env_vars: bool,
    /// `fs/open` and related methods with a sandbox.
    pub sandboxed_file_streaming: bool,
    /// `mode` of `fs/open`, and `fs/writeBlock` for such handles.
    pub file_write_streaming: bool,
    /// `shellSnapshot` of `process/start`.
    pub shell_snapshot_v2: bool,
    /// Sandboxes of Windows.
    pub windows_mxc: bool,
    /// Sandboxed processes that may write to the root have the standard devices.
    pub linux_root_write_preserves_devices: bool,
    /// Restrictions inside a writable root hold after an approval.
    pub linux_approved_root_write_preserves_restrictions: bool,
}

/// The mechanism that tracks the descendants of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum TreeKind {
    /// A cgroup per process. No descendant can leave it, and the kernel kills all of it at once.
    Cgroup,
    /// A subreaper per process, which inherits its orphans and can kill all descendants. It also
    /// ends them when the server dies. Earlier servers call it `keeper`.
    #[serde(alias = "keeper")]
    Subreaper,
    /// The process group, the session, and the parent links in `/proc`. A descendant that started
    /// its own session and lost its parent can't be found.
    #[default]
    Group,
}

crate::string_enum!(TreeKind);

impl fmt::Display for TreeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Self::serialize(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_name_of_the_subreaper_is_read() {
        let kind: TreeKind = serde_json::from_str("\"keeper\"").expect("a kind");
        assert_eq!(kind, TreeKind::Subreaper);
        assert_eq!(serde_json::to_string(&kind).expect("JSON"), "\"subreaper\"");
    }
}
