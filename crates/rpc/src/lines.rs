//! Line framing: one message per line.

use bytes::{Buf, BytesMut};

use crate::{Received, SkipReason, skipping::Skipping};

/// Splits received bytes into lines.
#[derive(Debug)]
pub(crate) struct Lines {
    limit: usize,
    /// Leading bytes that are known to contain no newline.
    searched: usize,
    /// The current line, if it is being discarded.
    skipping: Option<Skipping>,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Lines {
            limit,
            searched: 0,
            skipping: None,
        }
    }

    /// Takes the next non-blank line from the front of `received`. Returns `None` if more
    /// bytes are needed.
    pub(crate) fn next(&mut self, received: &mut BytesMut) -> Option<Received> {
        loop {
            let newline = received[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n')
                .map(|at| self.searched + at);
            let Some(end) = newline else {
                if received.len() > self.limit {
                    self.skip_because(SkipReason::TooLong);
                }
                if let Some(skipping) = &mut self.skipping {
                    skipping.discard(received);
                    received.clear();
                }
                self.searched = received.len();
                return None;
            };
            self.searched = 0;
            let mut line = received.split_to(end + 1);
            if end > self.limit {
                self.skip_because(SkipReason::TooLong);
            }
            if let Some(mut skipping) = self.skipping.take() {
                skipping.discard(&line);
                return Some(skipping.finish());
            }
            line.truncate(end);
            if let Some(message) = trimmed(line) {
                return Some(message);
            }
        }
    }

    /// Discards the current line.
    pub(crate) fn skip_because(&mut self, reason: SkipReason) {
        self.skipping.get_or_insert_with(|| Skipping::new(reason));
    }

    pub(crate) fn is_skipping(&self) -> bool {
        self.skipping.is_some()
    }

    pub(crate) fn raise_limit(&mut self, limit: usize) {
        self.limit = self.limit.max(limit);
    }

    /// Takes the last line, which needs no newline, at the end of the input.
    pub(crate) fn last(&mut self, received: &mut BytesMut) -> Option<Received> {
        if let Some(skipping) = self.skipping.take() {
            return Some(skipping.finish());
        }
        self.searched = 0;
        trimmed(received.split())
    }
}

fn trimmed(mut line: BytesMut) -> Option<Received> {
    while line.last().is_some_and(u8::is_ascii_whitespace) {
        line.truncate(line.len() - 1);
    }
    let leading = line
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    line.advance(leading);
    (!line.is_empty()).then(|| Received::Message(line.freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines, bytes: &[u8]) -> Vec<String> {
        let mut received = BytesMut::from(bytes);
        let mut found = Vec::new();
        while let Some(message) = lines.next(&mut received) {
            found.push(match message {
                Received::Message(line) => String::from_utf8_lossy(&line).into_owned(),
                other => format!("{other:?}"),
            });
        }
        found
    }

    #[test]
    fn lines_are_trimmed_and_blank_lines_skipped() {
        let mut lines = Lines::new(100);
        assert_eq!(all(&mut lines, b"a\r\n\n  \nb\nrest"), ["a", "b"]);
    }

    #[test]
    fn only_the_oversized_line_is_skipped() {
        let mut lines = Lines::new(4);
        let mut received = BytesMut::from(&b"too lo"[..]);
        assert!(lines.next(&mut received).is_none());
        assert!(received.is_empty(), "the oversized line is not buffered");
        received.extend_from_slice(b"ng\nok\n");
        let skipped = Received::Skipped(SkipReason::TooLong, None);
        assert_eq!(lines.next(&mut received), Some(skipped));
        assert!(matches!(lines.next(&mut received), Some(Received::Message(m)) if m == "ok"));
    }
}
