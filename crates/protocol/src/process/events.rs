//! `process/output`, `process/exited`, `process/closed`: events of a process.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lenient_exit_code;
use crate::Stream;
use crate::base64::{Base64Bytes, as_text};

/// Params of `process/output`.
///
/// The server sends these through [`OutputFrame`](crate::OutputFrame), which produces the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessOutput<'a> {
    /// The process.
    pub process_id: Cow<'a, str>,
    /// The event number.
    pub seq: u64,
    /// The stream it was written to.
    pub stream: Stream,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub chunk: Cow<'a, [u8]>,
}

/// Params of `process/exited`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessExited {
    /// The process.
    pub process_id: String,
    /// The event number.
    pub seq: u64,
    /// The exit code.
    pub exit_code: i32,
    /// Whether the sandbox seems to have caused a failure.
    pub sandbox_denied: bool,
}

/// Params of `process/exited` as a client reads them. Older servers send fewer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceivedExited {
    /// The process.
    pub process_id: String,
    /// The event number.
    pub seq: u64,
    /// The exit code.
    #[serde(deserialize_with = "lenient_exit_code::deserialize")]
    pub exit_code: i32,
    /// Whether the sandbox seems to have caused a failure, if the server reports it here.
    pub sandbox_denied: Option<bool>,
}

/// Params of `process/closed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessClosed {
    /// The process.
    pub process_id: String,
    /// The event number, the last one of the process.
    pub seq: u64,
}
