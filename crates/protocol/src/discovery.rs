//! `environmentConfig/read`, `capabilityRoots/discoverV1` and `capabilities/discoverV2`: configuration,
//! plugins and skills on the server's host.

use outpost_types::optional_member::{objects, optional_object};
use outpost_types::sandbox::SandboxParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PathUri;

/// Params of `environmentConfig/read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentConfigParams {
    /// The working directory, which determines the project. It need not exist.
    pub cwd: PathUri,
    /// The paths of keys to select from configuration files.
    pub config_paths: Vec<Vec<String>>,
    /// The paths of keys to select from files with requirements.
    pub requirements_paths: Vec<Vec<String>>,
}

/// Result of `environmentConfig/read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentConfigResult {
    /// The user's home directory, if there is one.
    pub user_home_dir: Option<PathUri>,
    /// The directory of the user's configuration, which need not exist.
    pub codex_home_dir: PathUri,
    /// The name of the host.
    pub hostname: String,
    /// The configuration.
    pub config: ConfigLayers,
    /// The requirements.
    pub requirements: ConfigLayers,
}

/// Layers of TOML, lowest precedence first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayers {
    /// The layers that have a selected key.
    pub layers: Vec<ExecutorConfigLayer>,
    /// The index at which a client inserts layers of its own service.
    pub cloud_insertion_index: usize,
}

/// The selected keys of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorConfigLayer {
    /// A description of the file.
    pub source: String,
    /// The directory that relative paths in it start from.
    pub base_dir: PathUri,
    /// The selected keys.
    pub toml: String,
}

/// Params of `capabilityRoots/discoverV1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiscoverRootsParams {
    /// The directories to search, at most 128.
    #[serde(deserialize_with = "objects")]
    pub roots: Vec<RootParams>,
}

/// A directory to search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RootParams {
    /// The client's name for it.
    pub id: String,
    /// The directory.
    pub path: PathUri,
    /// The sandbox that it is searched in; absent to search unsandboxed.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub sandbox: Option<SandboxParams>,
}

/// Result of `capabilityRoots/discoverV1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiscoverRootsResult {
    /// The roots, in the order of the request.
    pub roots: Vec<DiscoveredRoot>,
}

/// The files of a root. Nothing in them is parsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredRoot {
    /// The client's name for it.
    pub id: String,
    /// The directory.
    pub path: PathUri,
    /// The plugin that the root itself is.
    pub plugin: Option<PluginFiles>,
    /// The skills, sorted by path.
    pub skills: Vec<SkillFiles>,
    /// The manifests of all plugins in the root, sorted by path.
    pub namespace_manifests: Vec<TextFile>,
    /// Files that could not be read, each with the reason.
    pub warnings: Vec<String>,
    /// Why the root could not be searched.
    pub error: Option<String>,
}

/// The files of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginFiles {
    /// `plugin.json`.
    pub manifest: TextFile,
    /// `.mcp.json`.
    pub mcp_config: Option<TextFile>,
    /// `.app.json`.
    pub apps_config: Option<TextFile>,
}

/// The files of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillFiles {
    /// `SKILL.md`.
    pub instructions: TextFile,
    /// `agents/openai.yaml`.
    pub metadata: Option<TextFile>,
}

/// A file with its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextFile {
    /// The path.
    pub path: PathUri,
    /// The content.
    pub contents: String,
}

/// Params of `capabilities/discoverV2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiscoverParams {
    /// The working directory. It need not exist.
    pub cwd: PathUri,
    /// The sandbox that files are read in; absent to read unsandboxed.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub sandbox: Option<SandboxParams>,
}

/// Result of `capabilities/discoverV2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiscoverResult {
    /// The plugins that the user has enabled and installed.
    pub plugins: Vec<Plugin>,
    /// The user's skills.
    pub skills: Vec<Skill>,
    /// Files that could not be read, each with the reason.
    pub warnings: Vec<String>,
}

/// An installed plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plugin {
    /// `NAME@MARKETPLACE`.
    pub id: String,
    /// The name for people.
    pub display_name: String,
    /// Its id in the marketplace; always `null`.
    pub remote_plugin_id: Option<String>,
    /// The installed version.
    pub version: String,
    /// The directory of the plugin.
    pub root: PathUri,
    /// Its files.
    pub files: PluginFiles,
    /// Its skills.
    pub skills: Vec<Skill>,
}

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// The name; that of a plugin's skill begins with `PLUGIN:`.
    pub name: String,
    /// The purpose of the skill.
    pub description: String,
    /// A shorter description.
    pub short_description: Option<String>,
    /// The path of its `SKILL.md`.
    pub path: PathUri,
    /// The directory that it was found in; absent for a plugin's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_root: Option<DiscoveryRoot>,
    /// Always `null`: `agents/openai.yaml` is not parsed.
    pub dependencies: Option<serde_json::Value>,
    /// Always `null`: `agents/openai.yaml` is not parsed.
    pub policy: Option<serde_json::Value>,
}

/// A directory of skills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiscoveryRoot {
    /// `codex-home-skills` or `user-agent-skills`.
    pub id: String,
    /// The directory.
    pub path: PathUri,
}
