//! A body that comes piece by piece.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base64::{Base64Bytes, as_text};
use crate::params::or_default;

/// Params of `http/request/bodyDelta`.
///
/// The server sends these through [`BodyFrame`](crate::BodyFrame), which gives the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpBodyDelta<'a> {
    /// Of which request.
    pub request_id: Cow<'a, str>,
    /// Its number among the pieces of the body, which starts at 1.
    pub seq: u64,
    /// The bytes; none in the last piece.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub delta_base64: Cow<'a, [u8]>,
    /// Whether it is the last piece.
    #[serde(default, deserialize_with = "or_default")]
    pub done: bool,
    /// Why the body ends before it is whole.
    pub error: Option<String>,
}

/// Params of `http/request/ack`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpAckParams {
    /// Of which request.
    pub request_id: String,
    /// The client has every piece up to this one.
    pub seq: u64,
}

/// Params of `http/request/cancel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpCancelParams {
    /// Of which request nothing more is wanted.
    pub request_id: String,
}
