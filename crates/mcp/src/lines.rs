//! Splits a byte stream into lines of bounded length.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use crate::id_scanner::IdScanner;

/// Splits a byte stream, received in chunks, into lines of bounded length.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    limit: usize,
    /// The received part of an incomplete line.
    partial: BytesMut,
    /// The line being discarded because it exceeds the limit.
    oversized: Option<DiscardedLine>,
    ready: VecDeque<Line>,
}

/// A line that is discarded while it is received.
#[derive(Debug, Default)]
struct DiscardedLine {
    bytes: u64,
    scanner: IdScanner,
}

impl DiscardedLine {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.scanner.scan(bytes);
    }
}

/// A line without its terminator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
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
    pub(crate) fn new(limit: usize) -> Self {
        LineSplitter {
            limit,
            partial: BytesMut::new(),
            oversized: None,
            ready: VecDeque::new(),
        }
    }

    /// Adds received bytes. A line within one chunk isn't copied.
    pub(crate) fn push(&mut self, mut chunk: Bytes) {
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
    pub(crate) fn finish(&mut self) {
        if !self.partial.is_empty() || self.oversized.is_some() {
            self.add(Bytes::new(), true);
        }
    }

    /// Returns the next line. Empty lines are skipped.
    pub(crate) fn pop(&mut self) -> Option<Line> {
        self.ready.pop_front()
    }

    fn add(&mut self, bytes: Bytes, ends: bool) {
        if let Some(oversized) = &mut self.oversized {
            oversized.add(&bytes);
        } else if self.partial.len() + bytes.len() > self.limit {
            let oversized = self.oversized.insert(DiscardedLine::default());
            oversized.add(&std::mem::take(&mut self.partial));
            oversized.add(&bytes);
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
                bytes: oversized.bytes,
                response_id: oversized.scanner.response_id(),
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
}
