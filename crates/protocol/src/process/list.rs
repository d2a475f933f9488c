//! `process/list`.

use outpost_types::ProcessEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of `process/list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListResult {
    /// The processes that the session still knows, oldest first.
    pub processes: Vec<ProcessEntry>,
}
