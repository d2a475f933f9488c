//! `process/*`: params, results and notifications.

use std::borrow::Cow;

use outpost_types::optional_member::{object, or_default};
use outpost_types::sandbox::SandboxType;
use outpost_types::{EndedBy, ResourceUsage};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;

use crate::base64::{Base64Bytes, as_text};
use crate::{ProcessEntry, Signal, Stream, TerminalSize, WriteStatus};

/// Result of `process/start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartResult {
    /// The id from the request.
    pub process_id: String,
    /// The mechanism that confines the process. Older servers don't send it.
    #[serde(default)]
    pub sandbox_type: SandboxType,
}

/// Params of `process/read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    /// The process.
    pub process_id: String,
    /// Returns only events with a higher number; absent for all retained output.
    pub after_seq: Option<u64>,
    /// The limit of the result, in bytes. At least one chunk is returned.
    pub max_bytes: Option<u64>,
    /// The time to wait if there is nothing to return.
    pub wait_ms: Option<u64>,
    /// The session of the process, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Result of `process/read`.
///
/// `B` holds the bytes of a chunk: `AsRef<[u8]>` to serialize without a copy, `From<Vec<u8>>` to
/// deserialize.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>")
)]
pub struct ReadResult<B = Vec<u8>> {
    /// The output, in order.
    pub chunks: Vec<ReadChunk<B>>,
    /// The next event number; the next `after_seq` is one less.
    pub next_seq: u64,
    /// Whether the process has exited.
    pub exited: bool,
    /// The exit code.
    #[serde(default, deserialize_with = "any_optional_exit_code")]
    pub exit_code: Option<i32>,
    /// Whether no event follows.
    pub closed: bool,
    /// A failure other than the exit code.
    pub failure: Option<String>,
    /// Whether the sandbox seems to have caused a failure. Older servers don't send it.
    #[serde(default)]
    pub sandbox_denied: bool,
    /// The cause of its end, once it has exited. Other servers don't send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// The resources that it has used, once it has exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ResourceUsage>,
}

/// One output event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(serialize = "B: AsRef<[u8]>", deserialize = "B: From<Vec<u8>>"))]
pub struct ReadChunk<B = Vec<u8>> {
    /// The event number.
    pub seq: u64,
    /// The stream it was written to.
    pub stream: Stream,
    /// The bytes.
    #[serde(with = "as_text")]
    #[schemars(with = "Base64Bytes")]
    pub chunk: B,
}

/// Params of `process/write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WriteParams {
    /// The process.
    pub process_id: String,
    /// The bytes; absent to only close stdin.
    pub chunk: Option<Base64Bytes>,
    /// An idempotency key for retries; absent for a write that is never retried.
    #[schemars(length(min = 1, max = 256))]
    pub write_id: Option<String>,
    /// Closes stdin after the bytes.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub close_stdin: bool,
}

/// Result of `process/write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteResult {
    /// The outcome.
    pub status: WriteStatus,
}

/// Params of `process/signal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalParams {
    /// The process.
    pub process_id: String,
    /// The signal for its process group.
    pub signal: Signal,
    /// The session of the process, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Params of `process/terminate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TerminateParams {
    /// The process.
    pub process_id: String,
    /// The grace period before it is killed; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Also terminates leftover processes of an exited process.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub tree: bool,
    /// The session of the process, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Result of `process/terminate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminateResult {
    /// Whether it was running and is now being terminated.
    pub running: bool,
}

/// Params of `process/resize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResizeParams {
    /// The process.
    pub process_id: String,
    /// The new size of its PTY.
    #[serde(deserialize_with = "object")]
    pub size: TerminalSize,
}

/// Result of `process/list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListResult {
    /// The processes that the session still knows, oldest first.
    pub processes: Vec<ProcessEntry>,
}

/// Params of `process/ack`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AckParams {
    /// The process.
    pub process_id: String,
    /// The last event that the client has received.
    pub seq: u64,
}

/// Params of `process/output`.
///
/// The server sends these through [`OutputEncoder`](crate::OutputEncoder), which produces the same bytes.
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
    #[serde(deserialize_with = "any_exit_code")]
    pub exit_code: i32,
    /// Whether the sandbox seems to have caused a failure. Older servers don't send it.
    #[schemars(with = "bool")]
    pub sandbox_denied: Option<bool>,
    /// The cause of its end. Other servers don't send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// The resources that it has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ResourceUsage>,
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

/// The code of an unknown exit.
const UNKNOWN_EXIT: i32 = -1;

/// Reads an exit code from any number. Rejecting one would leave a client waiting forever for the
/// exit.
fn any_exit_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    Number::deserialize(deserializer).map(|number| exit_code(&number))
}

fn any_optional_exit_code<'de, D>(deserializer: D) -> Result<Option<i32>, D::Error>
where
    D: Deserializer<'de>,
{
    let number: Option<Number> = Option::deserialize(deserializer)?;
    Ok(number.as_ref().map(exit_code))
}

fn exit_code(number: &Number) -> i32 {
    let Some(number) = number.as_i64() else {
        return UNKNOWN_EXIT;
    };
    // Exit codes on Windows are unsigned.
    let unsigned = || u32::try_from(number).map(u32::cast_signed);
    i32::try_from(number)
        .or_else(|_| unsigned())
        .unwrap_or(UNKNOWN_EXIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_an_exit_code() {
        let read = |text: &str| any_exit_code(&mut serde_json::Deserializer::from_str(text));
        for (text, code) in [
            ("0", 0),
            ("300", 300),
            ("-1073741510", -1_073_741_510),
            ("3221225786", -1_073_741_510),
            ("4294967296", -1),
            ("-4294967296", -1),
            ("18446744073709551615", -1),
            ("1e300", -1),
        ] {
            assert_eq!(read(text).unwrap(), code, "{text}");
        }
        assert!(read("\"0\"").is_err());
    }
}
