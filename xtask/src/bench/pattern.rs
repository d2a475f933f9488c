//! What is poured out in a flood: the same block over and over, so that a reader can tell from the
//! position what must be there.

use anyhow::{Result, ensure};

/// How much is written at once.
pub(super) const BLOCK: usize = 64 * 1024;

/// How long a line of text is, with its end.
const LINE: usize = 64;

/// How many pieces are only counted for each one that is compared byte by byte.
const COMPARE_EVERY: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Pattern {
    /// All bytes there are, in no order.
    Raw,
    /// Lines of text, as terminals are made for.
    Lines,
}

impl Pattern {
    /// As it is called on a command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Lines => "lines",
        }
    }

    /// What is written, [`BLOCK`] bytes.
    pub(super) fn block(self) -> Vec<u8> {
        // A few steps of xorshift; any numbers without a short period would do.
        let mut state: u32 = 0x9E37_79B9;
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 16) as u8
        };
        match self {
            Self::Raw => (0..BLOCK).map(|_| byte()).collect(),
            Self::Lines => (0..BLOCK)
                .map(|at| match at % LINE {
                    63 => b'\n',
                    _ => b' ' + byte() % 95,
                })
                .collect(),
        }
    }

    /// What a reader gets for each block: a terminal ends lines in its own way.
    fn as_read(self) -> Vec<u8> {
        let block = self.block();
        match self {
            Self::Raw => block,
            Self::Lines => block
                .split_inclusive(|byte| *byte == b'\n')
                .flat_map(|line| [&line[..line.len() - 1], b"\r\n"].concat())
                .collect(),
        }
    }
}

/// Counts what arrives, and compares some of it with what must be there.
pub(super) struct Tally {
    /// Twice what a reader gets for a block, so that a piece may go over its end.
    expected: Vec<u8>,
    period: usize,
    pieces: usize,
    pub(super) bytes: usize,
}

impl Tally {
    pub(super) fn new(pattern: Pattern) -> Self {
        let once = pattern.as_read();
        Self {
            period: once.len(),
            expected: once.repeat(2),
            pieces: 0,
            bytes: 0,
        }
    }

    /// How many bytes a reader gets when `written` were written, which is some number of blocks.
    pub(super) fn expect(&self, written: usize) -> usize {
        written / BLOCK * self.period
    }

    pub(super) fn add(&mut self, piece: &[u8]) -> Result<()> {
        if self.pieces.is_multiple_of(COMPARE_EVERY) {
            self.compare(piece)?;
        }
        self.pieces += 1;
        self.bytes += piece.len();
        Ok(())
    }

    fn compare(&self, piece: &[u8]) -> Result<()> {
        let mut at = self.bytes;
        for part in piece.chunks(self.period) {
            let start = at % self.period;
            let expected = &self.expected[start..start + part.len()];
            ensure!(part == expected, "bytes were altered, near byte {at}");
            at += part.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_told_from_its_position() {
        for (pattern, read) in [
            (Pattern::Raw, BLOCK),
            (Pattern::Lines, BLOCK + BLOCK / LINE),
        ] {
            let mut tally = Tally::new(pattern);
            assert_eq!(pattern.block().len(), BLOCK);
            assert_eq!(tally.expect(3 * BLOCK), 3 * read);
            let stream = pattern.as_read().repeat(3);
            for piece in stream.chunks(1001) {
                tally.compare(piece).unwrap();
                tally.add(piece).unwrap();
            }
            assert_eq!(tally.bytes, 3 * read);
        }
    }

    #[test]
    fn a_byte_that_was_altered_is_found() {
        let tally = Tally::new(Pattern::Lines);
        let mut stream = Pattern::Lines.as_read().repeat(2);
        tally.compare(&stream).unwrap();
        stream[70_000] ^= 1;
        assert!(tally.compare(&stream).is_err());
        assert!(tally.compare(&Pattern::Lines.block()).is_err());
    }
}
