//! Reads a range of lines from a file that arrives in blocks.

use std::fmt::Write as _;

/// The requested lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::serve) struct LineRange {
    /// The first line, from 1.
    pub(in crate::serve) first: u64,
    /// Maximum number of lines.
    pub(in crate::serve) lines: u64,
    /// Maximum total size.
    pub(in crate::serve) bytes: usize,
    /// Maximum length of a line.
    pub(in crate::serve) line_bytes: usize,
}

/// Extracts a range of lines from the blocks of a file.
#[derive(Debug, Default)]
pub(in crate::serve) struct LineReader {
    range: LineRange,
    /// The number of the current line, from 1.
    number: u64,
    /// The beginning of the current line, up to its maximum length.
    line: Vec<u8>,
    /// The length of the current line so far.
    length: usize,
    /// Whether its last byte so far is a carriage return.
    after_cr: bool,
    lines: Vec<Line>,
    total_bytes: usize,
    /// The range is complete and the file has more lines.
    full: bool,
    binary: bool,
}

/// A line without its terminator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Line {
    pub(in crate::serve) number: u64,
    pub(in crate::serve) text: String,
    /// Number of omitted bytes.
    pub(in crate::serve) omitted: usize,
    /// Whether invalid UTF-8 was replaced by U+FFFD.
    pub(in crate::serve) lossy: bool,
    /// The terminator, which is empty at the end of the file.
    pub(in crate::serve) end: &'static str,
}

/// The extracted lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct LinePage {
    pub(in crate::serve) lines: Vec<Line>,
    /// The number of the next line, if there are more.
    pub(in crate::serve) next: Option<u64>,
    /// The number of lines of the file, if its end was reached.
    pub(in crate::serve) total: Option<u64>,
}

impl LineReader {
    pub(in crate::serve) fn new(range: LineRange) -> Self {
        LineReader {
            range,
            number: 1,
            ..LineReader::default()
        }
    }

    /// Adds the next block. Returns false if no more blocks are needed.
    pub(in crate::serve) fn push(&mut self, mut block: &[u8]) -> bool {
        if self.number == 1 && memchr::memchr(0, block).is_some() {
            self.binary = true;
        }
        while !block.is_empty() && !self.full && !self.binary {
            let end = memchr::memchr(b'\n', block);
            let part = &block[..end.unwrap_or(block.len())];
            self.extend(part);
            let Some(end) = end else { break };
            self.finish_line(if self.after_cr { "\r\n" } else { "\n" });
            block = &block[end + 1..];
            // Only bytes after the last line of the range prove that there is another line.
            if self.is_full() && !block.is_empty() {
                self.full = true;
            }
        }
        !self.full && !self.binary
    }

    /// Reports whether the file is binary: it has a NUL byte near its beginning.
    pub(in crate::serve) fn is_binary(&self) -> bool {
        self.binary
    }

    /// Returns the lines. `ended` tells whether the end of the file was reached.
    pub(in crate::serve) fn finish(mut self, ended: bool) -> LinePage {
        if ended && !self.full && self.length > 0 {
            if self.is_full() {
                self.full = true;
            } else {
                self.finish_line("");
            }
        }
        LinePage {
            next: (self.full || !ended).then_some(self.number),
            total: (ended && !self.full).then_some(self.number - 1),
            lines: self.lines,
        }
    }

    fn is_full(&self) -> bool {
        let last = self.range.first.saturating_add(self.range.lines);
        self.number >= last || self.total_bytes >= self.range.bytes
    }

    fn extend(&mut self, part: &[u8]) {
        if self.number >= self.range.first {
            if self.is_full() && !part.is_empty() {
                self.full = true;
                return;
            }
            let space = self.range.line_bytes.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(space)]);
        }
        self.length += part.len();
        if let Some(last) = part.last() {
            self.after_cr = *last == b'\r';
        }
    }

    fn finish_line(&mut self, end: &'static str) {
        if self.full {
            return;
        }
        if self.number >= self.range.first {
            let mut line = std::mem::take(&mut self.line);
            let cr = usize::from(end == "\r\n");
            let mut omitted = self.length - line.len();
            if omitted == 0 {
                line.truncate(line.len() - cr);
            } else {
                // The carriage return is part of the terminator.
                omitted -= cr;
                // Don't split a character.
                if let Err(error) = std::str::from_utf8(&line)
                    && error.error_len().is_none()
                {
                    omitted += line.len() - error.valid_up_to();
                    line.truncate(error.valid_up_to());
                }
            }
            let lossy = std::str::from_utf8(&line).is_err();
            let text = String::from_utf8_lossy(&line).into_owned();
            self.total_bytes += text.len() + 1;
            self.lines.push(Line {
                number: self.number,
                text,
                omitted,
                lossy,
                end,
            });
        }
        self.number += 1;
        self.length = 0;
        self.after_cr = false;
    }
}

/// Writes a line with its number.
pub(in crate::serve) fn write_numbered(to: &mut String, number: u64, line: &str) {
    let _ = writeln!(to, "{number:>6}\t{line}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNLIMITED: LineRange = LineRange {
        first: 1,
        lines: 1000,
        bytes: 100_000,
        line_bytes: 100,
    };

    fn read(range: LineRange, text: &[u8], block: usize) -> LinePage {
        let mut reader = LineReader::new(range);
        let mut more = true;
        for block in text.chunks(block) {
            more = reader.push(block);
            if !more {
                break;
            }
        }
        reader.finish(more)
    }

    proptest! {
        #[test]
        fn pages_add_up_to_the_file(
            text in "([a-zäß]{0,12}\n){0,20}[a-z]{0,5}",
            lines in 1_u64..7,
            bytes in 1_usize..60,
            block in 1_usize..20,
        ) {
            let expected: Vec<_> = text.lines().map(str::to_owned).collect();
            let mut found = Vec::new();
            let mut first = 1;
            loop {
                let range = LineRange { first, lines, bytes, ..UNLIMITED };
                let page = read(range, text.as_bytes(), block);
                for line in &page.lines {
                    prop_assert_eq!(line.number, found.len() as u64 + 1);
                    found.push(line.text.clone());
                }
                match page.next {
                    Some(next) => {
                        prop_assert!(next > first, "the range advances");
                        first = next;
                    }
                    None => {
                        prop_assert_eq!(page.total, Some(expected.len() as u64));
                        break;
                    }
                }
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn long_line_is_cut_between_characters() {
        let text = "ä".repeat(200);
        let range = LineRange {
            line_bytes: 101,
            ..UNLIMITED
        };
        let page = read(range, text.as_bytes(), 7);
        assert_eq!(page.lines[0].text, "ä".repeat(50));
        assert_eq!(page.lines[0].omitted, 300);
    }

    #[test]
    fn distinguishes_line_ends() {
        for block in [1, 2, 100] {
            let range = LineRange {
                line_bytes: 4,
                ..UNLIMITED
            };
            let page = read(range, b"a\r\nb\n\r\nlonger\r\nc\r", block);
            let lines: Vec<_> = page
                .lines
                .iter()
                .map(|line| (line.text.as_str(), line.end, line.omitted))
                .collect();
            assert_eq!(
                lines,
                [
                    ("a", "\r\n", 0),
                    ("b", "\n", 0),
                    ("", "\r\n", 0),
                    ("long", "\r\n", 2),
                    ("c\r", "", 0),
                ]
            );
        }
    }

    #[test]
    fn invalid_utf8_is_replaced_and_flagged() {
        let range = LineRange {
            line_bytes: 4,
            ..UNLIMITED
        };
        let page = read(range, b"caf\xe9\n\xe9\xe9\xe9\xe9\xe9\n\xef\xbf\xbd\n", 100);
        let lines: Vec<_> = page
            .lines
            .iter()
            .map(|line| (line.text.as_str(), line.lossy, line.omitted))
            .collect();
        let four = "\u{fffd}\u{fffd}\u{fffd}\u{fffd}";
        assert_eq!(
            lines,
            [
                ("caf\u{fffd}", true, 0),
                (four, true, 1),
                // A U+FFFD in the file itself is valid.
                ("\u{fffd}", false, 0)
            ]
        );
    }

    #[test]
    fn nul_byte_means_binary() {
        let mut reader = LineReader::new(UNLIMITED);
        assert!(!reader.push(b"\x7fELF\0"));
        assert!(reader.is_binary());
    }

    #[test]
    fn range_after_the_end_is_empty() {
        let range = LineRange {
            first: 10,
            ..UNLIMITED
        };
        let page = read(range, b"a\nb\n", 100);
        assert_eq!((page.lines.len(), page.total), (0, Some(2)));
    }
}
