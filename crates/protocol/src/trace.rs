//! Trace contexts of requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A W3C trace context. The request's span becomes a child of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceContext {
    /// Version, trace id, parent span and flags, as in the HTTP header of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Vendor data, as in the HTTP header of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}
