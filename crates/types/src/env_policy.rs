//! Selection of inherited environment variables.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::members::or_default;

/// Describes how a child's environment is built from the server's. The fields are applied in
/// order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvPolicy {
    /// The variables to start from.
    #[serde(default, deserialize_with = "or_default")]
    pub inherit: Inherit,
    /// Keeps variables whose names look like secrets.
    #[serde(default, deserialize_with = "or_default")]
    pub ignore_default_excludes: bool,
    /// Patterns of names to drop.
    #[serde(default, deserialize_with = "or_default")]
    pub exclude: Vec<String>,
    /// Variables to add.
    #[serde(default, deserialize_with = "or_default")]
    pub set: BTreeMap<String, String>,
    /// Patterns of names to keep; empty keeps all.
    #[serde(default, deserialize_with = "or_default")]
    pub include_only: Vec<String>,
}

/// The variables that an [`EnvPolicy`] starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum Inherit {
    /// The whole environment of the server.
    #[default]
    All,
    /// The few variables that nearly every program needs.
    Core,
    /// No variables.
    None,
}

crate::string_enum!(Inherit);
