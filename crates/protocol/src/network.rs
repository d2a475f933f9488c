//! Messages about the proxy of a process.

use outpost_types::{NetworkAnswer, NetworkDecision, NetworkTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `network/policyRequest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicyRequestParams {
    /// The process whose proxy asks.
    pub process_id: String,
    /// The target that no rule allows.
    pub request: NetworkTarget,
}

/// Result of `network/policyRequest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkPolicyRequestResult {
    /// The decision about the target. Anything that is not understood refuses it.
    pub decision: NetworkAnswer,
}

/// Params of `network/policyDecision`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicyDecision {
    /// The process whose proxy decided.
    pub process_id: String,
    /// The decision.
    #[serde(flatten)]
    pub decision: NetworkDecision,
}
