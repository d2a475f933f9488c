//! What a server says, as much of it as is measured.

use anyhow::{Context, Result, bail};
use memchr::{memchr, memmem};
use serde::Deserialize;

/// Where in a message its method and its process are looked for; what comes later is the output
/// itself.
const HEAD: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    /// A process has written something; the chunk is still base64.
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
    /// A request was answered, and not refused.
    Answer {
        id: u64,
    },
    /// Nothing that matters here.
    Other,
}

impl<'a> Message<'a> {
    /// A refusal is an error: nothing the benchmark asks for is to be refused.
    pub(super) fn parse(text: &'a [u8]) -> Result<Self> {
        if let Some(output) = output(text)? {
            return Ok(output);
        }
        let said: Said<'_> = serde_json::from_slice(text)
            .with_context(|| format!("the server said {}", String::from_utf8_lossy(text)))?;
        if let Some(error) = said.error {
            bail!("the server refused ({}): {}", error.code, error.message);
        }
        let process = || said.params.and_then(|params| params.process_id);
        let message = match (said.method, said.id) {
            (Some("process/exited"), _) => Self::Exited {
                process: process().context("an exit of no process")?,
                code: said
                    .params
                    .and_then(|params| params.exit_code)
                    .unwrap_or(-1),
            },
            (Some("process/closed"), _) => Self::Closed {
                process: process().context("an end of no process")?,
            },
            (None, Some(id)) => Self::Answer { id },
            _ => Self::Other,
        };
        Ok(message)
    }
}

/// Output, found without taking the message apart: a flood of it is what a client must keep up
/// with.
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
    digits.copied().try_fold(0u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// A string without escapes, which neither base64 nor our own process ids have.
fn string_after<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let start = memmem::find(text, key)? + key.len();
    let end = memchr(b'"', &text[start..])?;
    Some(&text[start..start + end])
}

#[derive(Deserialize)]
struct Said<'a> {
    id: Option<u64>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
    error: Option<Refusal>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    process_id: Option<&'a str>,
    exit_code: Option<i64>,
}

#[derive(Deserialize)]
struct Refusal {
    code: i64,
    message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_recognised() {
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
                Message::Answer { id: 7 },
            ),
            (r#"{"method":"something/else"}"#, Message::Other),
        ];
        for (text, message) in said {
            assert_eq!(Message::parse(text.as_bytes()).unwrap(), message, "{text}");
        }
    }

    #[test]
    fn a_refusal_is_an_error_with_its_words() {
        let text = br#"{"id":1,"error":{"code":-32603,"message":"no \"such\" file"}}"#;
        let error = Message::parse(text).unwrap_err();
        let words = r#"the server refused (-32603): no "such" file"#;
        assert_eq!(error.to_string(), words);
    }
}
