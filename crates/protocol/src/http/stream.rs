//! Streamed bodies of responses.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base64::{Base64Bytes, as_text};
use outpost_types::members::or_default;

/// Params of `http/request/bodyDelta`.
///
/// The server sends these through [`BodyFrame`](crate::BodyFrame), which produces the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpBodyDelta<'a> {
    /// The request.
    pub request_id: Cow<'a, str>,
    /// The number of the chunk, from 1.
    pub seq: u64,
    /// The bytes; empty in the last chunk.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub delta_base64: Cow<'a, [u8]>,
    /// Whether it is the last chunk.
    #[serde(default, deserialize_with = "or_default")]
    pub done: bool,
    /// The reason why the body ends early.
    pub error: Option<String>,
}

/// Params of `http/request/ack`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpAckParams {
    /// The request.
    pub request_id: String,
    /// The last chunk that the client has received.
    pub seq: u64,
}

/// Params of `http/request/cancel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpCancelParams {
    /// The request to cancel.
    pub request_id: String,
}
