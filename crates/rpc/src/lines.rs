//! Messages that are lines.

use bytes::{Buf, BytesMut};

use crate::Received;

/// Cuts received bytes into lines.
#[derive(Debug)]
pub(crate) struct Lines {
    limit: usize,
    /// How many bytes were searched already and hold no newline.
    searched: usize,
    /// The line under way is thrown away as it comes, and this is why.
    skipping: Option<Received>,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Lines {
            limit,
            searched: 0,
            skipping: None,
        }
    }

    /// Takes a line from the front of `received`; `None` means that more bytes
    /// are needed. Blank lines are nothing.
    pub(crate) fn next(&mut self, received: &mut BytesMut) -> Option<Received> {
        loop {
            let newline = received[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n')
                .map(|at| self.searched + at);
            let Some(end) = newline else {
                if received.len() > self.limit {
                    self.skipping.get_or_insert(Received::TooLong);
                }
                if self.skipping.is_some() {
                    received.clear();
                }
                self.searched = received.len();
                return None;
            };
            self.searched = 0;
            let mut line = received.split_to(end + 1);
            if let Some(reason) = self.skipping.take() {
                return Some(reason);
            }
            if end > self.limit {
                return Some(Received::TooLong);
            }
            line.truncate(end);
            if let Some(message) = trimmed(line) {
                return Some(message);
            }
        }
    }

    /// There is no memory for the line under way.
    pub(crate) fn give_up(&mut self) {
        self.skipping.get_or_insert(Received::NoMemory);
    }

    /// What is left when the input ends: a last line needs no newline.
    pub(crate) fn last(&mut self, received: &mut BytesMut) -> Option<Received> {
        if let Some(reason) = self.skipping.take() {
            return Some(reason);
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
    fn lines_are_trimmed_and_blank_ones_are_nothing() {
        let mut lines = Lines::new(100);
        assert_eq!(all(&mut lines, b"a\r\n\n  \nb\nrest"), ["a", "b"]);
    }

    #[test]
    fn a_line_over_the_limit_costs_that_line_alone() {
        let mut lines = Lines::new(4);
        let mut received = BytesMut::from(&b"too lo"[..]);
        assert!(lines.next(&mut received).is_none());
        assert!(received.is_empty(), "nothing of it is kept");
        received.extend_from_slice(b"ng\nok\n");
        assert!(matches!(lines.next(&mut received), Some(Received::TooLong)));
        assert!(matches!(lines.next(&mut received), Some(Received::Message(m)) if m == "ok"));
    }
}
