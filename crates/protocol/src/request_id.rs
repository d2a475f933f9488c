//! Request ids.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The id of a request, which its response returns unchanged.
///
/// Numbers beyond 64-bit integers, fractions and `null` are rejected. They could not be returned
/// unchanged, and the client would wait forever.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a string or a 64-bit integer")]
pub enum RequestId {
    /// A 64-bit integer.
    Integer(i64),
    /// Any string.
    Text(String),
}

impl RequestId {
    /// The id of an error that belongs to no request, such as a malformed message.
    pub const UNATTRIBUTED: Self = Self::Integer(-1);
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl JsonSchema for RequestId {
    fn schema_name() -> Cow<'static, str> {
        "RequestId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The id of a request, which its response returns unchanged.",
            "type": ["string", "integer"],
        })
    }
}
