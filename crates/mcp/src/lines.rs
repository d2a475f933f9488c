//! Splits a byte stream into lines of bounded length, and separates MCP messages from other
//! output for the proxy.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use outpost_types::IdScanner;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde_json::{Value, json};

/// Splits a byte stream, received in chunks, into lines of bounded length.
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    /// The received part of an incomplete line.
    partial: BytesMut,
    /// Scans the line being discarded because it exceeds the limit.
    oversized: Option<IdScanner>,
    ready: VecDeque<Line>,
}

/// A line without its terminator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A complete line.
    Complete(Bytes),
    /// A line that exceeded the limit and was discarded.
    TooLong {
        /// The length of the line.
        bytes: u64,
        /// The request id, if the line is a JSON-RPC response.
        response_id: Option<Value>,
    },
}

impl LineSplitter {
    /// Returns a splitter for lines of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        LineSplitter {
            limit,
            partial: BytesMut::new(),
            oversized: None,
            ready: VecDeque::new(),
        }
    }

    /// Adds received bytes. A line within one chunk isn't copied.
    pub fn push(&mut self, mut chunk: Bytes) {
        while let Some(at) = memchr::memchr(b'\n', &chunk) {
            let head = chunk.split_to(at);
            let _newline = chunk.split_to(1);
            self.add(head, true);
        }
        if !chunk.is_empty() {
            self.add(chunk, false);
        }
    }

    /// Ends the input. An unterminated last line counts as a line.
    pub fn finish(&mut self) {
        if !self.partial.is_empty() || self.oversized.is_some() {
            self.add(Bytes::new(), true);
        }
    }

    /// Returns the next line. Empty lines are skipped.
    pub fn pop(&mut self) -> Option<Line> {
        self.ready.pop_front()
    }

    fn add(&mut self, bytes: Bytes, ends: bool) {
        if let Some(oversized) = &mut self.oversized {
            oversized.scan(&bytes);
        } else if self.partial.len() + bytes.len() > self.limit {
            let oversized = self.oversized.insert(IdScanner::default());
            oversized.scan(&std::mem::take(&mut self.partial));
            oversized.scan(&bytes);
        } else if ends && self.partial.is_empty() {
            return self.complete(bytes);
        } else {
            self.partial.extend_from_slice(&bytes);
        }
        if !ends {
            return;
        }
        match self.oversized.take() {
            Some(oversized) => self.ready.push_back(Line::TooLong {
                bytes: oversized.bytes(),
                response_id: oversized.response_id(),
            }),
            None => {
                let line = std::mem::take(&mut self.partial).freeze();
                self.complete(line);
            }
        }
    }

    fn complete(&mut self, mut line: Bytes) {
        if line.ends_with(b"\r") {
            line.truncate(line.len() - 1);
        }
        if !line.is_empty() {
            self.ready.push_back(Line::Complete(line));
        }
    }
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

impl From<Line> for FilteredLine {
    fn from(line: Line) -> Self {
        match line {
            Line::Complete(line) if is_message(&line) => FilteredLine::Message(line),
            Line::Complete(line) => FilteredLine::Other(line),
            Line::TooLong { bytes, response_id } => match response_id {
                Some(id) => FilteredLine::Message(oversized_response(bytes, &id)),
                None => FilteredLine::TooLong { bytes },
            },
        }
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

/// Parses a message.
pub(crate) fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, serde_json::Error> {
    // serde would accept an array as the fields of a message.
    if line.trim_ascii_start().starts_with(b"[") {
        let message = "JSON-RPC batches are not supported";
        return Err(serde_json::Error::custom(message));
    }
    serde_json::from_slice(line)
}

/// Builds the error that replaces a discarded response, so that its call fails at once.
pub(crate) fn oversized_response(bytes: u64, id: &Value) -> Bytes {
    let message = format!("the response of {bytes} bytes is too long");
    let error = json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": {"code": -32603, "message": message},
    });
    error.to_string().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let mut lines = LineSplitter::new(limit);
        for chunk in chunks {
            lines.push(Bytes::copy_from_slice(chunk));
        }
        lines.finish();
        std::iter::from_fn(|| lines.pop()).collect()
    }

    fn too_long(bytes: u64) -> Line {
        Line::TooLong {
            bytes,
            response_id: None,
        }
    }

    fn complete(text: &str) -> Line {
        Line::Complete(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn joins_chunks_and_accepts_unterminated_last_line() {
        assert_eq!(
            split(10, &[b"a", b"b\r", b"\n\n\r\nc\nd\n", b"", b"e"]),
            [complete("ab"), complete("c"), complete("d"), complete("e")]
        );
    }

    #[test]
    fn discards_only_oversized_lines() {
        assert_eq!(
            split(3, &[b"abc\nabcd\nab", b"cdef", b"g\nx\n", b"long!"]),
            [
                complete("abc"),
                too_long(4),
                too_long(7),
                complete("x"),
                too_long(5),
            ]
        );
    }

    #[test]
    fn oversized_response_reports_its_id() {
        let lines = split(20, &[b"{\"result\":\"a long one\",", b"\"id\":4", b"2}\n"]);
        let [Line::TooLong { bytes, response_id }] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!((*bytes, response_id), (31, &Some(42.into())));
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'x')], 0..60),
            cuts in proptest::collection::vec(0usize..60, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| *at < bytes.len()).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for at in cuts.into_iter().chain([bytes.len()]) {
                chunks.push(&bytes[from..at]);
                from = at;
            }
            prop_assert_eq!(split(5, &chunks), split(5, &[&bytes]));
        }
    }

    fn filtered(mut lines: LineSplitter) -> Vec<FilteredLine> {
        lines.finish();
        std::iter::from_fn(|| lines.pop().map(FilteredLine::from)).collect()
    }

    #[test]
    fn separates_messages_from_other_lines() {
        let mut filter = LineSplitter::new(60);
        filter.push(Bytes::from_static(
            b"starting...\n{\"jsonrpc\":\"2.0\"}\r\n{broken\n[{\"id\":1}]\n [ {\"id\":2} ]\n[1]\n",
        ));
        filter.push(format!("{{\"id\":\"a\",\"result\":\"{}\"}}\n", "x".repeat(90)).into());
        filter.push(format!("{}\n{{}}", "y".repeat(90)).into());
        let other = |text: &'static str| FilteredLine::Other(text.into());
        let message = |text: &'static str| FilteredLine::Message(text.into());
        let error = r#"{"error":{"code":-32603,"message":"the response of 112 bytes is too long"},"id":"a","jsonrpc":"2.0"}"#;
        assert_eq!(
            filtered(filter),
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
        let mut filter = LineSplitter::new(60);
        let input: [&[u8]; 3] = [
            b"{\"a\":\"\xff\"}",
            b"[{\"\xc3\":1}]",
            "{\"a\":\"ä\"}".as_bytes(),
        ];
        filter.push([input.join(&b'\n'), b"\n".to_vec()].concat().into());
        assert_eq!(
            filtered(filter),
            [
                FilteredLine::Other(Bytes::from_static(input[0])),
                FilteredLine::Other(Bytes::from_static(input[1])),
                FilteredLine::Message(Bytes::from_static(input[2])),
            ]
        );
    }
}
