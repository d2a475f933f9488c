//! What is asked for, and what comes back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base64::{Base64Bytes, as_text};
use crate::params::{objects, or_default};

/// Params of `http/request`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpRequestParams {
    /// `GET`, `POST`, …
    pub method: String,
    /// Of the web.
    pub url: String,
    /// In this order; a name may come more than once.
    #[serde(default, deserialize_with = "objects")]
    pub headers: Vec<HttpHeaderParams>,
    /// The body, if there is one.
    pub body_base64: Option<Base64Bytes>,
    /// How long all of it may take; absent for as long as it takes.
    pub timeout_ms: Option<u64>,
    /// What to do with a response that points elsewhere.
    #[serde(default, deserialize_with = "or_default")]
    pub redirect_policy: RedirectPolicy,
    /// The client's own key for the stream of the body.
    #[serde(default, deserialize_with = "or_default")]
    pub request_id: String,
    /// The body comes in notifications, behind the answer.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_response: bool,
    /// The client acknowledges what it has of the body, and gets no more than a window ahead of
    /// that. Beyond the released servers.
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
    /// Its name.
    pub name: String,
    /// Its value, or the beginning of it.
    #[serde(default, deserialize_with = "or_default")]
    pub value: String,
    /// The variable of the server whose value is the rest of it.
    pub value_env_var: Option<String>,
}

/// What to do with a response that points elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum RedirectPolicy {
    /// Go there.
    #[default]
    Follow,
    /// It is the response.
    Stop,
}

crate::words::word!(RedirectPolicy);

/// The answer to `http/request`.
///
/// `B` is whatever holds the bytes of the body, as in [`ReadResult`](crate::ReadResult).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>")
)]
pub struct HttpRequestResult<B = Vec<u8>> {
    /// The number in the first line of the response.
    pub status: u16,
    /// In the order in which they came.
    pub headers: Vec<HttpHeader>,
    /// The body; empty if it is streamed.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub body_base64: B,
}

/// A header of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpHeader {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: String,
}
