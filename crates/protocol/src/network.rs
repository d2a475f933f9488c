//! Messages about the proxy of a process.

use outpost_types::{NetworkAnswer, NetworkDecision, NetworkTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `process/network`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkParams {
    /// The process.
    pub process_id: String,
    /// The session of the process, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Result of `process/network`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkResult {
    /// The last decisions, oldest first.
    pub decisions: Vec<NetworkRecord>,
    /// The number of decisions so far.
    pub decision_count: u64,
    /// The number of older decisions that are no longer kept.
    pub dropped_decisions: u64,
    /// The number of decisions that were neither reported to the client nor recorded in the audit log.
    pub lost_decisions: u64,
    /// The bytes of all connections to targets, in both directions.
    pub bytes: u64,
}

/// A decision of a proxy, and the traffic of the connection that it allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkRecord {
    /// The decision.
    #[serde(flatten)]
    pub decision: NetworkDecision,
    /// The bytes that the process has sent to the target.
    pub sent_bytes: u64,
    /// The bytes that the process has received from the target.
    pub received_bytes: u64,
}

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
