//! `config/read`: the effective settings of the server, and their sources.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use outpost_types::optional_member::or_default;

/// Params of `config/read`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReadParams {
    /// Includes the settings of each source.
    #[serde(default, deserialize_with = "or_default")]
    pub include_layers: bool,
    /// The directory of the client's project. Has no effect: the server has no settings per directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Result of `config/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigReadResult {
    /// The effective settings in the form of a configuration file, without secrets.
    pub config: Map<String, Value>,
    /// The source of each setting, by its path in `config` with dots between the keys.
    pub origins: BTreeMap<String, ConfigOrigin>,
    /// The settings of each source, highest precedence first; absent unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<ConfigLayer>>,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigOrigin {
    /// The source.
    pub name: ConfigSource,
    /// A version that changes with the content of the source.
    pub version: String,
}

/// The settings of one source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigLayer {
    /// The source.
    pub name: ConfigSource,
    /// A version that changes with the content of the source.
    pub version: String,
    /// Its settings, without secrets.
    pub config: Map<String, Value>,
}

/// A source of settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "camelCase")]
pub enum ConfigSource {
    /// Command-line flags.
    CommandLine,
    /// Environment variables.
    Environment,
    /// The user's configuration file.
    User {
        /// A native path.
        file: String,
    },
    /// The system's configuration file.
    System {
        /// A native path.
        file: String,
    },
    /// Built-in defaults.
    Default,
}

outpost_types::tagged_enum!(ConfigSource, "type");
