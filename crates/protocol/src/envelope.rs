//! Envelopes of incoming messages.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::de::{Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::RequestId;
use crate::known_members::PresentMembers;
use crate::malformed::{MAX_MESSAGE_BYTES, Malformed};
use crate::params::parse_params;
use crate::vet::vet;

/// One incoming message with its params still raw. Borrows from the bytes it was parsed from.
///
/// `method` and `id` make a request, `method` alone a notification, `result` a response; anything
/// else is an error. `"jsonrpc"` and unknown members are ignored.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A request.
    Request {
        /// The id of the response.
        id: RequestId,
        /// The method.
        method: Cow<'a, str>,
        /// The raw params; `null` counts as absent.
        params: Option<&'a RawValue>,
        /// The caller's trace. An invalid one is ignored, so that it does not fail the call.
        trace: Option<TraceContext>,
        /// The names of all members in the params.
        members: PresentMembers<'a>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The raw params; `null` counts as absent.
        params: Option<&'a RawValue>,
        /// The names of all members in the params.
        members: PresentMembers<'a>,
    },
    /// A successful response.
    Response {
        /// The id of the request.
        id: RequestId,
        /// The raw result.
        result: &'a RawValue,
    },
    /// An error response.
    Error {
        /// The id of the request, if the error belongs to one.
        id: Option<RequestId>,
    },
}

impl<'a> Incoming<'a> {
    /// Parses one message.
    ///
    /// The result is safe to deserialize: the number and nesting of values in `params` is bounded,
    /// and no object has a key twice.
    pub fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(Malformed::TooLarge);
        }
        let text = std::str::from_utf8(message).map_err(Malformed::NotUtf8)?;
        let members = vet(text)?;
        // Serde would accept an array as the values of the fields below.
        if !text.trim_ascii_start().starts_with('{') {
            return Err(Malformed::NotAnObject);
        }
        serde_json::from_str::<Members<'a>>(text)
            .map_err(Malformed::NotJson)?
            .into_incoming(members)
    }
}

/// The members that determine the kind of a message, as raw text.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    trace: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present")]
    error: Option<IgnoredAny>,
}

impl<'a> Members<'a> {
    fn into_incoming(self, members: PresentMembers<'a>) -> Result<Incoming<'a>, Malformed> {
        let Some(method) = self.method else {
            return self.into_response();
        };
        let Text(method) =
            serde_json::from_str(method.get()).map_err(|_| Malformed::InvalidMethod)?;
        let params = self.params;
        let Some(id) = self.id else {
            return Ok(Incoming::Notification {
                method,
                params,
                members,
            });
        };
        Ok(Incoming::Request {
            id: read_id(id)?,
            method,
            params,
            trace: self.trace.and_then(|trace| parse_params(Some(trace)).ok()),
            members,
        })
    }

    fn into_response(self) -> Result<Incoming<'a>, Malformed> {
        // A peer that could not read the id sends `null`, which counts as none.
        let id = match self.id {
            Some(id) if id.get() != "null" => Some(read_id(id)?),
            _ => None,
        };
        match (self.result, self.error, id) {
            (Some(result), _, Some(id)) => Ok(Incoming::Response { id, result }),
            (Some(_), _, None) => Err(Malformed::ResultWithoutId),
            (None, Some(_), id) => Ok(Incoming::Error { id }),
            (None, None, _) => Err(Malformed::NoShape),
        }
    }
}

fn read_id(id: &RawValue) -> Result<RequestId, Malformed> {
    // An integer in JSON, although parsers read it as a float.
    if id.get() == "-0" {
        return Ok(RequestId::Integer(0));
    }
    serde_json::from_str(id.get()).map_err(|_| Malformed::InvalidId)
}

/// Reads a member whose presence matters: `null` counts as present, unlike with a plain `Option`.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// A string that borrows if it has no escapes. Serde does so only for a `Cow` that is a field.
#[derive(Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

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
