//! Levels of enforcement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mechanisms that confine processes. The operator chooses; there is no fallback between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
#[schemars(rename = "SandboxLevel")]
pub enum Level {
    /// Namespaces, with seccomp and Landlock inside: enforces everything.
    #[default]
    Namespaces,
    /// Landlock and seccomp without namespaces, for hosts that forbid namespaces. Enforces less.
    Landlock,
}

crate::string_enum!(Level);
