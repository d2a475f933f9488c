//! `process/ack`: a client says how far it has come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `process/ack`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AckParams {
    /// Which process.
    pub process_id: String,
    /// The client has this event and all before it.
    pub seq: u64,
}
