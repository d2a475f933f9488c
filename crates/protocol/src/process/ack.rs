//! `process/ack`: acknowledges events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `process/ack`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AckParams {
    /// The process.
    pub process_id: String,
    /// The last event that the client has received.
    pub seq: u64,
}
