//! `config/read`: what is in force on this server, and where it comes from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::params::or_default;

/// Params of `config/read`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReadParams {
    /// Also tell what each source says by itself.
    #[serde(default, deserialize_with = "or_default")]
    pub include_layers: bool,
}

/// The answer to `config/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigReadResult {
    /// What is in force, as a file would say it, without secrets.
    pub config: Map<String, Value>,
    /// For each setting, its path in `config` with dots between the keys, where its value is from.
    pub origins: BTreeMap<String, ConfigOrigin>,
    /// What each source says, highest precedence first; absent unless it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<ConfigLayer>>,
}

/// Where a value is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigOrigin {
    /// The source.
    pub name: ConfigSource,
    /// Changes when what the source says does.
    pub version: String,
}

/// One source of settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigLayer {
    /// The source.
    pub name: ConfigSource,
    /// Changes when what the source says does.
    pub version: String,
    /// What it says, without secrets.
    pub config: Map<String, Value>,
}

/// Who can say how a server is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "camelCase")]
pub enum ConfigSource {
    /// The flags it was started with.
    CommandLine,
    /// Variables of its environment.
    Environment,
    /// The file of its user.
    User {
        /// A native path.
        file: String,
    },
    /// The file of its machine.
    System {
        /// A native path.
        file: String,
    },
    /// What is built in.
    Default,
}

crate::words::tagged!(ConfigSource, "type");
