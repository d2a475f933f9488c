//! Request ids.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The id of a request, which its response returns unchanged.
///
/// Numbers beyond 64-bit integers, fractions and `null` are rejected. They could not be returned
/// unchanged, and the client would wait forever.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
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

/// Derived code for an untagged enum would first store any value as a tree, whose size the peer
/// chooses.
impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

/// Reads a request id: a number or a string.
struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a 64-bit integer")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<RequestId, E> {
        Ok(RequestId::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<RequestId, E> {
        let unexpected = serde::de::Unexpected::Unsigned(number);
        let integer = i64::try_from(number).map_err(|_| E::invalid_value(unexpected, &self))?;
        Ok(RequestId::Integer(integer))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RequestId, E> {
        Ok(RequestId::Text(text.to_owned()))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of this array would take about thirty times its size.
    #[test]
    fn array_is_rejected_at_its_first_byte() {
        let error = serde_json::from_str::<RequestId>("[0,0,0,0]").unwrap_err();
        assert_eq!(error.column(), 1, "{error}");
        assert!(
            error
                .to_string()
                .contains("expected a string or a 64-bit integer")
        );
    }

    #[test]
    fn integer_beyond_64_bits_is_rejected() {
        for text in ["9223372036854775808", "1.5", "null", "{}"] {
            assert!(serde_json::from_str::<RequestId>(text).is_err(), "{text}");
        }
        let least = serde_json::from_str::<RequestId>("-9223372036854775808");
        assert_eq!(least.ok(), Some(RequestId::Integer(i64::MIN)));
    }
}
