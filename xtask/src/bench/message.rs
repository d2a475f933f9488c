//! Parses server messages as far as needed.

use anyhow::{Context, Result};
use memchr::{memchr, memmem};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Method and process id are searched in this prefix of a message.
const HEAD: usize = 512;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    /// Output, still in base64.
    Output {
        process: &'a str,
        seq: u64,
        chunk: &'a [u8],
    },
    Exited {
        process: &'a str,
        code: i64,
    },
    Closed {
        process: &'a str,
    },
    /// A successful response with its result, as JSON.
    Response {
        id: u64,
        result: &'a str,
    },
    /// An error response.
    Rejected {
        code: i64,
        message: String,
    },
    /// Any other message.
    Other,
}

impl<'a> Message<'a> {
    pub(super) fn parse(text: &'a [u8]) -> Result<Self> {
        if let Some(output) = output(text)? {
            return Ok(output);
        }
        let raw: RawMessage<'_> = serde_json::from_slice(text)
            .with_context(|| format!("invalid message {}", String::from_utf8_lossy(text)))?;
        let RawMessage { params, .. } = raw;
        let process = || params.and_then(|params| params.process_id);
        let process = || process().context("a notification about no process");
        Ok(match (raw.method, raw.id, raw.error) {
            (_, _, Some(RpcError { code, message })) => Self::Rejected { code, message },
            (Some("process/exited"), ..) => Self::Exited {
                process: process()?,
                code: params.and_then(|params| params.exit_code).unwrap_or(-1),
            },
            (Some("process/closed"), ..) => Self::Closed {
                process: process()?,
            },
            (None, Some(id), _) => Self::Response {
                id,
                result: raw.result.map_or("null", RawValue::get),
            },
            _ => Self::Other,
        })
    }
}

/// Finds output without parsing JSON, to keep up with a flood.
fn output(text: &[u8]) -> Result<Option<Message<'_>>> {
    let head = &text[..text.len().min(HEAD)];
    if memmem::find(head, br#""process/output""#).is_none() {
        return Ok(None);
    }
    let process = string_after(text, br#""processId":""#).context("output of no process")?;
    let chunk = string_after(text, br#""chunk":""#).context("output without a chunk")?;
    let seq = number_after(text, br#""seq":"#).context("output without a number")?;
    Ok(Some(Message::Output {
        process: str::from_utf8(process)?,
        seq,
        chunk,
    }))
}

fn number_after(text: &[u8], key: &[u8]) -> Option<u64> {
    let start = memmem::find(text, key)? + key.len();
    let digits = text[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let end = start + digits.count();
    str::from_utf8(&text[start..end]).ok()?.parse().ok()
}

/// Returns a string without escapes, as in base64 and our process ids.
fn string_after<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let start = memmem::find(text, key)? + key.len();
    let end = memchr(b'"', &text[start..])?;
    Some(&text[start..start + end])
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    id: Option<u64>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcError>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    process_id: Option<&'a str>,
    exit_code: Option<i64>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_messages_are_parsed() {
        let said = [
            (
                r#"{"method":"process/output","params":{"processId":"p1","seq":1,"stream":"stdout","chunk":"aGk="}}"#,
                Message::Output {
                    process: "p1",
                    seq: 1,
                    chunk: b"aGk=",
                },
            ),
            (
                r#"{"params":{"chunk":"","seq":204,"processId":"p1"},"method":"process/output"}"#,
                Message::Output {
                    process: "p1",
                    seq: 204,
                    chunk: b"",
                },
            ),
            (
                r#"{"method":"process/exited","params":{"processId":"p2","seq":2,"exitCode":3,"sandboxDenied":false}}"#,
                Message::Exited {
                    process: "p2",
                    code: 3,
                },
            ),
            (
                r#"{"method":"process/closed","params":{"processId":"p2","seq":3}}"#,
                Message::Closed { process: "p2" },
            ),
            (
                r#"{"id":7,"result":{"processId":"p1","sandboxType":"none"}}"#,
                Message::Response {
                    id: 7,
                    result: r#"{"processId":"p1","sandboxType":"none"}"#,
                },
            ),
            (r#"{"method":"something/else"}"#, Message::Other),
        ];
        for (text, message) in said {
            assert_eq!(Message::parse(text.as_bytes()).unwrap(), message, "{text}");
        }
    }

    #[test]
    fn error_response_is_parsed() {
        let text = br#"{"id":1,"error":{"code":-32603,"message":"no \"such\" file"}}"#;
        let rejected = Message::Rejected {
            code: -32603,
            message: r#"no "such" file"#.to_owned(),
        };
        assert_eq!(Message::parse(text).unwrap(), rejected);
    }
}
