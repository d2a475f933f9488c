//! The envelope of a message that comes in.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde_json::value::RawValue;

use crate::malformed::{MAX_MESSAGE_BYTES, Malformed, MalformedKind};
use crate::params::parse_params;
use crate::vet::vet;
use crate::{RequestId, TraceContext};

/// One message, opened as far as it takes to know where it belongs. It borrows from the bytes it was
/// parsed from.
///
/// `method` and `id` make a request; `method` alone a notification; `result` a response; otherwise it
/// is an error. `"jsonrpc"` and members nobody knows are ignored.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// Wants an answer with this id.
    Request {
        /// Comes back with the answer.
        id: RequestId,
        /// What is asked for.
        method: Cow<'a, str>,
        /// Still raw; `null` is the same as absent.
        params: Option<&'a RawValue>,
        /// The caller's trace. One that can't be read is left out: a broken trace must not break a
        /// call.
        trace: Option<TraceContext>,
    },
    /// Wants no answer.
    Notification {
        /// What is said.
        method: Cow<'a, str>,
        /// Still raw; `null` is the same as absent.
        params: Option<&'a RawValue>,
    },
    /// Answers a request with a result.
    Response {
        /// Which request.
        id: RequestId,
    },
    /// Answers a request with an error.
    Error {
        /// Which request; nothing when it is about none in particular.
        id: Option<RequestId>,
    },
}

impl<'a> Incoming<'a> {
    /// Opens the envelope of one message.
    ///
    /// Whatever comes back is safe to build trees from: the number of values in `params` is bounded,
    /// their nesting too, and no object in them has a key twice.
    pub fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        Self::open(message).map_err(Malformed::from)
    }

    fn open(message: &'a [u8]) -> Result<Self, MalformedKind> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(MalformedKind::TooLarge);
        }
        let text = std::str::from_utf8(message).map_err(MalformedKind::NotUtf8)?;
        vet(text)?;
        // Arrays would otherwise be taken for members in the order of the fields below.
        if !text.trim_ascii_start().starts_with('{') {
            return Err(MalformedKind::NotAnObject);
        }
        serde_json::from_str::<Members<'a>>(text)
            .map_err(MalformedKind::NotJson)?
            .into_shape()
    }
}

/// The members that decide the shape, each as it stands in the text.
#[derive(serde::Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    trace: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present")]
    result: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "present")]
    error: Option<IgnoredAny>,
}

impl<'a> Members<'a> {
    fn into_shape(self) -> Result<Incoming<'a>, MalformedKind> {
        let Some(method) = self.method else {
            return self.into_answer();
        };
        let Text(method) =
            serde_json::from_str(method.get()).map_err(|_| MalformedKind::InvalidMethod)?;
        let params = self.params;
        let Some(id) = self.id else {
            return Ok(Incoming::Notification { method, params });
        };
        Ok(Incoming::Request {
            id: read_id(id)?,
            method,
            params,
            trace: self.trace.and_then(|trace| parse_params(Some(trace)).ok()),
        })
    }

    fn into_answer(self) -> Result<Incoming<'a>, MalformedKind> {
        // A peer that could not read our id says `null`, which here means the same as none.
        let id = match self.id {
            Some(id) if id.get() != "null" => Some(read_id(id)?),
            _ => None,
        };
        match (self.result, self.error, id) {
            (Some(_), _, Some(id)) => Ok(Incoming::Response { id }),
            (Some(_), _, None) => Err(MalformedKind::ResultWithoutId),
            (None, Some(_), id) => Ok(Incoming::Error { id }),
            (None, None, _) => Err(MalformedKind::NoShape),
        }
    }
}

fn read_id(id: &RawValue) -> Result<RequestId, MalformedKind> {
    // An integer like any other in JSON, though parsers take it for a fraction.
    if id.get() == "-0" {
        return Ok(RequestId::Integer(0));
    }
    serde_json::from_str(id.get()).map_err(|_| MalformedKind::InvalidId)
}

/// Reads a member whose mere presence means something: `null` counts, unlike with a plain `Option`.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// A string that borrows when it has no escapes. serde only does so for a `Cow` that is a field.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
