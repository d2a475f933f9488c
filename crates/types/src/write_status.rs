//! Outcomes of writes to stdin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of a write to a process's stdin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum WriteStatus {
    /// The bytes are queued in order, by this write or by an earlier one with the same id.
    Accepted,
    /// The process does not exist.
    UnknownProcess,
    /// The process has no stdin, or it is closed.
    StdinClosed,
    /// The process is still starting.
    Starting,
}

crate::string_enum!(WriteStatus);
