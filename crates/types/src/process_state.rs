//! The life cycle of a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A phase in the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum ProcessState {
    /// The child does not exist yet.
    Starting,
    /// The child runs.
    Running,
    /// The child has exited. Descendants may still write to its streams.
    Exited,
    /// The streams have ended too; no event follows.
    Closed,
}

crate::string_enum!(ProcessState);
