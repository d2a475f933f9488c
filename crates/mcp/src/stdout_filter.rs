//! Separates MCP messages from other output of a server, for the proxy.

use bytes::Bytes;
use serde::de::IgnoredAny;

use crate::lines::{Line, LineSplitter};

/// Splits a server's stdout into messages and other lines.
#[derive(Debug)]
pub struct StdoutFilter {
    lines: LineSplitter,
}

/// A line of a server's stdout, without its terminator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilteredLine {
    /// A message, or the error that replaces an oversized response.
    Message(Bytes),
    /// A line that is not a message and must not be mixed with messages.
    Other(Bytes),
    /// A line that exceeded the limit and was discarded.
    TooLong {
        /// The length of the line.
        bytes: u64,
    },
}

impl StdoutFilter {
    /// Returns a filter for messages of at most `message_bytes`.
    #[must_use]
    pub fn new(message_bytes: usize) -> Self {
        StdoutFilter {
            lines: LineSplitter::new(message_bytes),
        }
    }

    /// Adds received bytes.
    pub fn push(&mut self, chunk: Bytes) {
        self.lines.push(chunk);
    }

    /// Ends the input.
    pub fn finish(&mut self) {
        self.lines.finish();
    }

    /// Returns the next line.
    pub fn pop(&mut self) -> Option<FilteredLine> {
        Some(match self.lines.pop()? {
            Line::Complete(line) if is_message(&line) => FilteredLine::Message(line),
            Line::Complete(line) => FilteredLine::Other(line),
            Line::TooLong { bytes, response_id } => match response_id {
                Some(id) => FilteredLine::Message(oversized_response(bytes, &id)),
                None => FilteredLine::TooLong { bytes },
            },
        })
    }
}

/// Reports whether a line is a JSON object, or a JSON-RPC batch as in MCP 2025-03-26.
///
/// `IgnoredAny` doesn't validate UTF-8, so this does: some hosts fail on invalid UTF-8.
fn is_message(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let first = line.strip_prefix(b"[").unwrap_or(line);
    first.trim_ascii_start().starts_with(b"{")
        && std::str::from_utf8(line)
            .is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

fn oversized_response(bytes: u64, id: &serde_json::Value) -> Bytes {
    let message = format!("the response of {bytes} bytes is too long");
    let error = serde_json::json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": {"code": -32603, "message": message},
    });
    error.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(mut filter: StdoutFilter) -> Vec<FilteredLine> {
        filter.finish();
        std::iter::from_fn(|| filter.pop()).collect()
    }

    #[test]
    fn separates_messages_from_other_lines() {
        let mut filter = StdoutFilter::new(60);
        filter.push(Bytes::from_static(
            b"starting...\n{\"jsonrpc\":\"2.0\"}\r\n{broken\n[{\"id\":1}]\n [ {\"id\":2} ]\n[1]\n",
        ));
        filter.push(format!("{{\"id\":\"a\",\"result\":\"{}\"}}\n", "x".repeat(90)).into());
        filter.push(format!("{}\n{{}}", "y".repeat(90)).into());
        let other = |text: &'static str| FilteredLine::Other(text.into());
        let message = |text: &'static str| FilteredLine::Message(text.into());
        let error = r#"{"error":{"code":-32603,"message":"the response of 112 bytes is too long"},"id":"a","jsonrpc":"2.0"}"#;
        assert_eq!(
            lines(filter),
            [
                other("starting..."),
                message("{\"jsonrpc\":\"2.0\"}"),
                other("{broken"),
                message("[{\"id\":1}]"),
                message(" [ {\"id\":2} ]"),
                other("[1]"),
                message(error),
                FilteredLine::TooLong { bytes: 90 },
                message("{}"),
            ]
        );
    }

    #[test]
    fn invalid_utf8_is_not_a_message() {
        let mut filter = StdoutFilter::new(60);
        let input: [&[u8]; 3] = [
            b"{\"a\":\"\xff\"}",
            b"[{\"\xc3\":1}]",
            "{\"a\":\"ä\"}".as_bytes(),
        ];
        filter.push([input.join(&b'\n'), b"\n".to_vec()].concat().into());
        assert_eq!(
            lines(filter),
            [
                FilteredLine::Other(Bytes::from_static(input[0])),
                FilteredLine::Other(Bytes::from_static(input[1])),
                FilteredLine::Message(Bytes::from_static(input[2])),
            ]
        );
    }
}
