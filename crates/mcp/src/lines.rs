//! Lines out of pieces.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use crate::glance::Glance;

/// Gathers lines of bounded length, however the pieces are cut.
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    /// The beginning of a line whose end hasn't come.
    partial: BytesMut,
    /// The line that is being thrown away, if one is.
    overlong: Option<Overlong>,
    ready: VecDeque<Line>,
}

/// A line that is thrown away as it comes.
#[derive(Debug, Default)]
struct Overlong {
    bytes: u64,
    glance: Glance,
}

impl Overlong {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.glance.at(bytes);
    }
}

/// A line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// All of it.
    Whole(Bytes),
    /// It was longer than it may be, and so it is gone.
    TooLong {
        /// Its length.
        bytes: u64,
        /// The id of the request that it answers, if it is an answer.
        answers: Option<Value>,
    },
}

impl Lines {
    /// Lines of at most so many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Lines {
            limit,
            partial: BytesMut::new(),
            overlong: None,
            ready: VecDeque::new(),
        }
    }

    /// Takes what came next. A line that lies in one piece isn't copied.
    pub fn push(&mut self, mut piece: Bytes) {
        while let Some(at) = memchr::memchr(b'\n', &piece) {
            let head = piece.split_to(at);
            let _newline = piece.split_to(1);
            self.add(head, true);
        }
        if !piece.is_empty() {
            self.add(piece, false);
        }
    }

    /// No more will come: what there is of a last line is a line.
    pub fn finish(&mut self) {
        if !self.partial.is_empty() || self.overlong.is_some() {
            self.add(Bytes::new(), true);
        }
    }

    /// The next line; empty ones are none.
    pub fn pop(&mut self) -> Option<Line> {
        self.ready.pop_front()
    }

    fn add(&mut self, bytes: Bytes, ends: bool) {
        if let Some(overlong) = &mut self.overlong {
            overlong.add(&bytes);
        } else if self.partial.len() + bytes.len() > self.limit {
            let overlong = self.overlong.insert(Overlong::default());
            overlong.add(&std::mem::take(&mut self.partial));
            overlong.add(&bytes);
        } else if ends && self.partial.is_empty() {
            return self.complete(bytes);
        } else {
            self.partial.extend_from_slice(&bytes);
        }
        if !ends {
            return;
        }
        match self.overlong.take() {
            Some(overlong) => self.ready.push_back(Line::TooLong {
                bytes: overlong.bytes,
                answers: overlong.glance.answers(),
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
            self.ready.push_back(Line::Whole(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gathered(limit: usize, pieces: &[&[u8]]) -> Vec<Line> {
        let mut lines = Lines::new(limit);
        for piece in pieces {
            lines.push(Bytes::copy_from_slice(piece));
        }
        lines.finish();
        std::iter::from_fn(|| lines.pop()).collect()
    }

    fn too_long(bytes: u64) -> Line {
        Line::TooLong {
            bytes,
            answers: None,
        }
    }

    fn whole(text: &str) -> Line {
        Line::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn lines_are_gathered_across_pieces_and_the_last_needs_no_end() {
        assert_eq!(
            gathered(10, &[b"a", b"b\r", b"\n\n\r\nc\nd\n", b"", b"e"]),
            [whole("ab"), whole("c"), whole("d"), whole("e")]
        );
    }

    #[test]
    fn what_is_too_long_is_gone_and_nothing_else_is() {
        assert_eq!(
            gathered(3, &[b"abc\nabcd\nab", b"cdef", b"g\nx\n", b"long!"]),
            [
                whole("abc"),
                too_long(4),
                too_long(7),
                whole("x"),
                too_long(5),
            ]
        );
    }

    #[test]
    fn who_waits_for_an_answer_that_is_too_long_can_be_told() {
        let lines = gathered(20, &[b"{\"result\":\"a long one\",", b"\"id\":4", b"2}\n"]);
        let [Line::TooLong { bytes, answers }] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!((*bytes, answers), (31, &Some(42.into())));
    }

    proptest! {
        #[test]
        fn where_the_pieces_are_cut_makes_no_difference(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'x')], 0..60),
            cuts in proptest::collection::vec(0usize..60, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| *at < bytes.len()).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for at in cuts.into_iter().chain([bytes.len()]) {
                pieces.push(&bytes[from..at]);
                from = at;
            }
            prop_assert_eq!(gathered(5, &pieces), gathered(5, &[&bytes]));
        }
    }
}
