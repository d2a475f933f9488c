//! Messages from a server, as a client reads them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::envelope::Text;
use crate::method::PROCESS_OUTPUT;
use crate::{ProcessOutput, RequestId, RpcError};

/// One message from a server. Borrows from the bytes it was parsed from.
///
/// Output carries most of the bytes, so it is decoded in the same pass that detects it, without a
/// tree in between.
#[derive(Debug)]
pub enum FromServer<'a> {
    /// `process/output`.
    Output(ProcessOutput<'a>),
    /// Any other notification.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The raw value.
        params: Option<&'a RawValue>,
    },
    /// A request to the client.
    Request {
        /// The id of the response.
        id: RequestId,
        /// The method.
        method: Cow<'a, str>,
    },
    /// A successful response.
    Response {
        /// The id of the request.
        id: RequestId,
        /// The raw value.
        result: &'a RawValue,
    },
    /// An error response, or an error that belongs to no request.
    Error {
        /// The id of the request.
        id: Option<RequestId>,
        /// The error.
        error: RpcError,
    },
}

impl<'a> FromServer<'a> {
    /// Parses one message.
    pub fn parse(message: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(message)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FromServer<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

/// The members of a message from the server.
#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Unknown,
}

/// Reads a message from the server.
struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = FromServer<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FromServer<'de>, A::Error> {
        use serde::de::Error as _;

        let mut id: Option<RequestId> = None;
        let mut method: Option<Text<'de>> = None;
        let mut params: Option<&'de RawValue> = None;
        let mut output = None;
        let mut result: Option<&'de RawValue> = None;
        let mut error: Option<RpcError> = None;
        while let Some(field) = map.next_key()? {
            match field {
                Field::Id => id = map.next_value()?,
                Field::Method => method = Some(map.next_value()?),
                // Servers write the method first. Otherwise the params are parsed twice.
                Field::Params if method.as_ref().is_some_and(|m| m.0 == PROCESS_OUTPUT) => {
                    output = Some(map.next_value()?);
                }
                Field::Params => params = map.next_value()?,
                Field::Result => result = Some(map.next_value()?),
                Field::Error => error = Some(map.next_value()?),
                Field::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let Some(Text(method)) = method else {
            return match (result, error, id) {
                (Some(result), _, Some(id)) => Ok(FromServer::Response { id, result }),
                (Some(_), _, None) => Err(A::Error::missing_field("id")),
                (None, Some(error), id) => Ok(FromServer::Error { id, error }),
                (None, None, _) => Err(A::Error::custom("neither a method nor a response")),
            };
        };
        if let Some(id) = id {
            return Ok(FromServer::Request { id, method });
        }
        if method != PROCESS_OUTPUT {
            return Ok(FromServer::Notification { method, params });
        }
        let text = params.map_or("{}", RawValue::get);
        let output = output.map_or_else(|| serde_json::from_str(text), Ok);
        output.map(FromServer::Output).map_err(A::Error::custom)
    }
}
