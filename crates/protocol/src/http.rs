//! `http/request`: an HTTP request that the server makes.

use std::borrow::Cow;

use outpost_types::optional_member::{objects, or_default};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base64::{Base64Bytes, as_text};

/// Params of `http/request`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpRequestParams {
    /// The method: `GET`, `POST`, …
    pub method: String,
    /// The URL, with the scheme http or https.
    pub url: String,
    /// The headers, in order. Names may repeat.
    #[serde(default, deserialize_with = "objects")]
    pub headers: Vec<HttpHeaderParams>,
    /// The body, if there is one.
    pub body_base64: Option<Base64Bytes>,
    /// The timeout of the whole exchange; absent for none.
    pub timeout_ms: Option<u64>,
    /// The handling of redirects.
    #[serde(default, deserialize_with = "or_default")]
    pub redirect_policy: RedirectPolicy,
    /// The id of a streamed body, chosen by the client.
    #[serde(default, deserialize_with = "or_default")]
    pub request_id: String,
    /// Streams the body in notifications after the result.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_response: bool,
    /// Enables flow control: the server sends at most a window more than the client has acknowledged.
    /// An extension beyond the released servers.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub acked: bool,
}

/// A header of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpHeaderParams {
    /// The name.
    pub name: String,
    /// The value, or its beginning.
    #[serde(default, deserialize_with = "or_default")]
    pub value: String,
    /// The environment variable of the server whose value follows.
    pub value_env_var: Option<String>,
}

/// The handling of redirects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum RedirectPolicy {
    /// Follows redirects.
    #[default]
    Follow,
    /// Returns the redirect itself.
    Stop,
}

outpost_types::string_enum!(RedirectPolicy);

/// Result of `http/request`.
///
/// `B` holds the bytes of the body, as in [`ReadResult`](crate::ReadResult).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>")
)]
pub struct HttpRequestResult<B = Vec<u8>> {
    /// The status code.
    pub status: u16,
    /// The headers, in order.
    pub headers: Vec<HttpHeader>,
    /// The body; empty if it is streamed.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub body_base64: B,
}

/// A header of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpHeader {
    /// The name, in lower case.
    pub name: String,
    /// The value.
    pub value: String,
}

/// Params of `http/request/bodyDelta`.
///
/// The server sends these through [`BodyEncoder`](crate::BodyEncoder), which produces the same bytes.
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
