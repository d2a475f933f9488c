//! The contents of a flood: one block repeated, so that a reader can verify bytes by position.

use std::io;

use anyhow::{Context as _, Result, ensure};

/// The block size.
const BLOCK: usize = 64 * 1024;

/// The length of a line, with its newline.
const LINE: usize = 64;

/// Every n-th piece is compared byte by byte; the others are counted.
const COMPARE_EVERY: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Pattern {
    /// All byte values, pseudo-random.
    Raw,
    /// Lines of text, for PTYs.
    Lines,
}

impl Pattern {
    /// Generates the block, [`BLOCK`] bytes.
    pub(super) fn block(self) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        fastrand::Rng::with_seed(1).fill(&mut block);
        if self == Self::Lines {
            for (at, byte) in block.iter_mut().enumerate() {
                *byte = match at % LINE {
                    63 => b'\n',
                    _ => b' ' + *byte % 95,
                };
            }
        }
        block
    }

    /// The bytes a reader gets per block: a PTY converts line ends.
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

/// Counts received bytes and verifies a sample.
pub(super) struct StreamCheck {
    /// Two periods, so that a piece may wrap around.
    expected: Vec<u8>,
    period: usize,
    pieces: usize,
    bytes: usize,
}

impl StreamCheck {
    pub(super) fn new(pattern: Pattern) -> Self {
        let once = pattern.as_read();
        Self {
            period: once.len(),
            expected: once.repeat(2),
            pieces: 0,
            bytes: 0,
        }
    }

    /// Adds what `read` returns, until it returns 0.
    pub(super) fn read_all(
        &mut self,
        buffer_size: usize,
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> Result<()> {
        let mut buffer = vec![0; buffer_size];
        loop {
            match read(&mut buffer).context("reading the flood")? {
                0 => return Ok(()),
                read => self.add(&buffer[..read])?,
            }
        }
    }

    /// Checks that everything arrived that a reader gets for `written` bytes, a multiple of the
    /// block size. Returns the number of bytes.
    pub(super) fn complete(&self, written: usize) -> Result<usize> {
        let (found, expected) = (self.bytes, written / BLOCK * self.period);
        ensure!(found == expected, "{found} bytes of {expected} arrived");
        Ok(found)
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
    fn written_bytes_match_their_position() {
        for (pattern, read) in [
            (Pattern::Raw, BLOCK),
            (Pattern::Lines, BLOCK + BLOCK / LINE),
        ] {
            let mut check = StreamCheck::new(pattern);
            assert_eq!(pattern.block().len(), BLOCK);
            let stream = pattern.as_read().repeat(3);
            for piece in stream.chunks(1001) {
                check.compare(piece).unwrap();
                check.add(piece).unwrap();
            }
            assert_eq!(check.complete(3 * BLOCK).unwrap(), 3 * read);
            assert!(check.complete(2 * BLOCK).is_err());
        }
    }

    #[test]
    fn altered_byte_is_found() {
        let check = StreamCheck::new(Pattern::Lines);
        let mut stream = Pattern::Lines.as_read().repeat(2);
        check.compare(&stream).unwrap();
        stream[70_000] ^= 1;
        assert!(check.compare(&stream).is_err());
        assert!(check.compare(&Pattern::Lines.block()).is_err());
    }
}
