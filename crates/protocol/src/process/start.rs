//! Result of `process/start`.

use outpost_types::sandbox::SandboxType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of `process/start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartResult {
    /// The id from the request.
    pub process_id: String,
    /// The mechanism that confines the process. Older servers don't send it.
    #[serde(default)]
    pub sandbox_type: SandboxType,
}
