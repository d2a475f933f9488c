//! Sandbox support of a host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Level;

/// Describes whether a host can confine processes, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxSupport {
    /// The `sandboxType` of a confined process; `none` if nothing can be enforced.
    #[serde(rename = "type")]
    pub kind: SandboxType,
    /// The level that the operator chose.
    pub level: Level,
    /// The reason why nothing can be enforced, and the remedy.
    pub reason: Option<String>,
}

/// The mechanism that confines a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum SandboxType {
    /// The process is not confined.
    #[default]
    None,
    /// Linux, at any level.
    LinuxSeccomp,
    /// macOS.
    MacosSeatbelt,
    /// Windows.
    WindowsRestrictedToken,
}

crate::string_enum!(SandboxType);
