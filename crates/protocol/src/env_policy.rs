//! What of the server's environment a process gets to see.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::params::or_default;

/// `envPolicy` of `process/start`, in the order in which it is applied. This is only the wish; it is
/// carried out where the server's environment is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvPolicy {
    /// What to start from.
    #[serde(default, deserialize_with = "or_default")]
    pub inherit: Inherit,
    /// Keep names that look like secrets.
    #[serde(default, deserialize_with = "or_default")]
    pub ignore_default_excludes: bool,
    /// Patterns of names to drop.
    #[serde(default, deserialize_with = "or_default")]
    pub exclude: Vec<String>,
    /// Variables to add.
    #[serde(default, deserialize_with = "or_default")]
    pub set: BTreeMap<String, String>,
    /// If not empty, patterns of the only names to keep.
    #[serde(default, deserialize_with = "or_default")]
    pub include_only: Vec<String>,
}

/// What an [`EnvPolicy`] starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum Inherit {
    /// The whole environment of the server.
    #[default]
    All,
    /// The few names any program needs.
    Core,
    /// Nothing.
    None,
}

crate::words::word!(Inherit);
