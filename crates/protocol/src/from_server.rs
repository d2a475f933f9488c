//! The messages a client gets.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::method::PROCESS_OUTPUT;
use crate::{ProcessOutput, RequestId, RpcError};

/// One message of a server, opened by its client. It borrows from the bytes it was parsed from.
///
/// Output is decoded in the same pass that finds out that it is output, since it is where the bytes
/// are: no tree is built of it and nothing is looked at twice.
#[derive(Debug)]
pub enum FromServer<'a> {
    /// `process/output`.
    Output(ProcessOutput<'a>),
    /// Any other notification.
    Notification {
        /// What is said.
        method: Cow<'a, str>,
        /// Still raw.
        params: Option<&'a RawValue>,
    },
    /// The server wants something of its client.
    Request {
        /// What the answer has to carry.
        id: RequestId,
        /// What is asked for.
        method: Cow<'a, str>,
    },
    /// A request was answered with a result.
    Response {
        /// Which one.
        id: RequestId,
        /// Still raw.
        result: &'a RawValue,
    },
    /// A request was answered with an error, or one about none in particular has come.
    Error {
        /// Which one.
        id: Option<RequestId>,
        /// What went wrong.
        error: RpcError,
    },
}

impl<'a> FromServer<'a> {
    /// Opens one message.
    pub fn parse(message: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(message)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FromServer<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

/// `params`, as far as they are understood by the time they come.
enum Params<'a> {
    Output(ProcessOutput<'a>),
    Raw(&'a RawValue),
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Member {
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Unknown,
}

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
        let mut params = None;
        let mut result: Option<&'de RawValue> = None;
        let mut error: Option<RpcError> = None;
        while let Some(member) = map.next_key()? {
            match member {
                Member::Id => id = map.next_value()?,
                Member::Method => method = Some(map.next_value()?),
                // Every server writes the method first; one that doesn't costs a second look.
                Member::Params if method.as_ref().is_some_and(|m| m.0 == PROCESS_OUTPUT) => {
                    params = Some(Params::Output(map.next_value()?));
                }
                Member::Params => {
                    params = map.next_value::<Option<_>>()?.map(Params::Raw);
                }
                Member::Result => result = Some(map.next_value()?),
                Member::Error => error = Some(map.next_value()?),
                Member::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        match (method, params, result, error) {
            (Some(method), _, _, _) if id.is_some() => {
                let id = id.unwrap_or(RequestId::UNATTRIBUTED);
                let method = method.0;
                Ok(FromServer::Request { id, method })
            }
            (Some(_), Some(Params::Output(output)), _, _) => Ok(FromServer::Output(output)),
            (Some(Text(method)), params, _, _) => {
                let params = match params {
                    Some(Params::Raw(raw)) => Some(raw),
                    _ => None,
                };
                if method == PROCESS_OUTPUT {
                    let text = params.map_or("{}", RawValue::get);
                    let output = serde_json::from_str(text).map_err(A::Error::custom)?;
                    return Ok(FromServer::Output(output));
                }
                Ok(FromServer::Notification { method, params })
            }
            (None, _, Some(result), _) => {
                let id = id.ok_or_else(|| A::Error::missing_field("id"))?;
                Ok(FromServer::Response { id, result })
            }
            (None, _, None, Some(error)) => Ok(FromServer::Error { id, error }),
            (None, _, None, None) => Err(A::Error::custom("neither a method nor an answer")),
        }
    }
}

/// A string that borrows when it has no escapes. serde only does so for a `Cow` that is a field.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
