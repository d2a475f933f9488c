//! A part of a file, by lines or by bytes.

use std::fmt::Write as _;

/// Which lines, and how much of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Wanted {
    /// The first line, from 1.
    pub(in crate::serve) first: u64,
    /// How many.
    pub(in crate::serve) lines: u64,
    /// How many bytes in all.
    pub(in crate::serve) bytes: usize,
    /// How many of each line.
    pub(in crate::serve) line_bytes: usize,
}

/// Takes the lines that are wanted out of a file that comes in blocks.
#[derive(Debug)]
pub(in crate::serve) struct View {
    wanted: Wanted,
    /// The number of the line that comes next, from 1.
    number: u64,
    /// The line that is coming, as much of it as is shown,
    line: Vec<u8>,
    /// how long it is so far,
    length: usize,
    /// and whether its last byte so far is a carriage return.
    returned: bool,
    shown: Vec<Line>,
    shown_bytes: usize,
    full: bool,
    binary: bool,
}

/// A line to be shown, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Line {
    pub(in crate::serve) number: u64,
    pub(in crate::serve) text: String,
    /// How many bytes of it are not shown.
    pub(in crate::serve) cut: usize,
    /// Whether some of its bytes are no UTF-8, and marks are in their place.
    pub(in crate::serve) marred: bool,
    pub(in crate::serve) end: End,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve) enum End {
    /// With the file.
    Open,
    Lf,
    CrLf,
}

impl End {
    pub(in crate::serve) fn as_str(self) -> &'static str {
        match self {
            End::Open => "",
            End::Lf => "\n",
            End::CrLf => "\r\n",
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Seen {
    pub(in crate::serve) lines: Vec<Line>,
    /// The line to read on with, if there is one.
    pub(in crate::serve) next: Option<u64>,
    /// How many lines there are, if the end was seen.
    pub(in crate::serve) total: Option<u64>,
}

impl View {
    pub(in crate::serve) fn new(wanted: Wanted) -> Self {
        View {
            wanted,
            number: 1,
            line: Vec::new(),
            length: 0,
            returned: false,
            shown: Vec::new(),
            shown_bytes: 0,
            full: false,
            binary: false,
        }
    }

    /// Takes the next block. False if no more is needed: it is full, or no text.
    pub(in crate::serve) fn take(&mut self, mut block: &[u8]) -> bool {
        // What has a zero in its beginning is no text.
        if self.number == 1 && memchr::memchr(0, block).is_some() {
            self.binary = true;
        }
        while !block.is_empty() && !self.full && !self.binary {
            let end = memchr::memchr(b'\n', block);
            let part = &block[..end.unwrap_or(block.len())];
            self.extend(part);
            let Some(end) = end else { break };
            self.finish_line(match self.returned {
                true => End::CrLf,
                false => End::Lf,
            });
            block = &block[end + 1..];
            // Only what is behind the last line that is shown says whether there is
            // another one.
            if self.is_full() && !block.is_empty() {
                self.full = true;
            }
        }
        !self.full && !self.binary
    }

    /// Whether it turned out to be no text.
    pub(in crate::serve) fn is_binary(&self) -> bool {
        self.binary
    }

    /// The file has ended, or no more is needed.
    pub(in crate::serve) fn finish(mut self, ended: bool) -> Seen {
        if ended && !self.full && self.length > 0 {
            if self.is_full() {
                self.full = true;
            } else {
                self.finish_line(End::Open);
            }
        }
        Seen {
            next: (self.full || !ended).then_some(self.number),
            total: (ended && !self.full).then_some(self.number - 1),
            lines: self.shown,
        }
    }

    fn is_full(&self) -> bool {
        let last = self.wanted.first.saturating_add(self.wanted.lines);
        self.number >= last || self.shown_bytes >= self.wanted.bytes
    }

    fn extend(&mut self, part: &[u8]) {
        if self.number >= self.wanted.first {
            // What follows the last line is only looked for.
            if self.is_full() && !part.is_empty() {
                self.full = true;
                return;
            }
            let room = self.wanted.line_bytes.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
        }
        self.length += part.len();
        if let Some(last) = part.last() {
            self.returned = *last == b'\r';
        }
    }

    fn finish_line(&mut self, end: End) {
        if self.full {
            return;
        }
        if self.number >= self.wanted.first {
            let mut line = std::mem::take(&mut self.line);
            let ending = usize::from(end == End::CrLf);
            let mut cut = self.length - line.len();
            if cut == 0 {
                line.truncate(line.len() - ending);
            } else {
                // It is part of the end, and not of what isn't shown.
                cut -= ending;
                // A character isn't taken apart.
                if let Err(error) = std::str::from_utf8(&line)
                    && error.error_len().is_none()
                {
                    cut += line.len() - error.valid_up_to();
                    line.truncate(error.valid_up_to());
                }
            }
            let marred = std::str::from_utf8(&line).is_err();
            let text = String::from_utf8_lossy(&line).into_owned();
            self.shown_bytes += text.len() + 1;
            self.shown.push(Line {
                number: self.number,
                text,
                cut,
                marred,
                end,
            });
        }
        self.number += 1;
        self.length = 0;
        self.returned = false;
    }
}

/// Writes a line with its number in front, as it is shown everywhere.
pub(in crate::serve) fn numbered(to: &mut String, number: u64, line: &str) {
    let _ = writeln!(to, "{number:>6}\t{line}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLENTY: Wanted = Wanted {
        first: 1,
        lines: 1000,
        bytes: 100_000,
        line_bytes: 100,
    };

    fn seen(wanted: Wanted, text: &[u8], block: usize) -> Seen {
        let mut view = View::new(wanted);
        let mut more = true;
        for block in text.chunks(block) {
            more = view.take(block);
            if !more {
                break;
            }
        }
        view.finish(more)
    }

    proptest! {
        #[test]
        fn pages_put_together_are_the_file(
            text in "([a-zäß]{0,12}\n){0,20}[a-z]{0,5}",
            lines in 1_u64..7,
            bytes in 1_usize..60,
            block in 1_usize..20,
        ) {
            let expected: Vec<_> = text.lines().map(str::to_owned).collect();
            let mut found = Vec::new();
            let mut first = 1;
            loop {
                let wanted = Wanted { first, lines, bytes, ..PLENTY };
                let seen = seen(wanted, text.as_bytes(), block);
                for line in &seen.lines {
                    prop_assert_eq!(line.number, found.len() as u64 + 1);
                    found.push(line.text.clone());
                }
                match seen.next {
                    Some(next) => {
                        prop_assert!(next > first, "it goes on");
                        first = next;
                    }
                    None => {
                        prop_assert_eq!(seen.total, Some(expected.len() as u64));
                        break;
                    }
                }
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let text = "ä".repeat(200);
        let wanted = Wanted {
            line_bytes: 101,
            ..PLENTY
        };
        let seen = seen(wanted, text.as_bytes(), 7);
        assert_eq!(seen.lines[0].text, "ä".repeat(50));
        assert_eq!(seen.lines[0].cut, 300);
    }

    #[test]
    fn line_ends_are_told_apart() {
        for block in [1, 2, 100] {
            let wanted = Wanted {
                line_bytes: 4,
                ..PLENTY
            };
            let seen = seen(wanted, b"a\r\nb\n\r\nlonger\r\nc\r", block);
            let lines: Vec<_> = seen
                .lines
                .iter()
                .map(|line| (line.text.as_str(), line.end, line.cut))
                .collect();
            assert_eq!(
                lines,
                [
                    ("a", End::CrLf, 0),
                    ("b", End::Lf, 0),
                    ("", End::CrLf, 0),
                    ("long", End::CrLf, 2),
                    ("c\r", End::Open, 0),
                ]
            );
        }
    }

    #[test]
    fn what_is_no_utf8_is_marked() {
        let wanted = Wanted {
            line_bytes: 4,
            ..PLENTY
        };
        let seen = seen(
            wanted,
            b"caf\xe9\n\xe9\xe9\xe9\xe9\xe9\n\xef\xbf\xbd\n",
            100,
        );
        let lines: Vec<_> = seen
            .lines
            .iter()
            .map(|line| (line.text.as_str(), line.marred, line.cut))
            .collect();
        let four = "\u{fffd}\u{fffd}\u{fffd}\u{fffd}";
        assert_eq!(
            lines,
            [
                ("caf\u{fffd}", true, 0),
                (four, true, 1),
                // A mark that is in the file is as good as any other character.
                ("\u{fffd}", false, 0)
            ]
        );
    }

    #[test]
    fn a_zero_is_no_text() {
        let mut view = View::new(PLENTY);
        assert!(!view.take(b"\x7fELF\0"));
        assert!(view.is_binary());
    }

    #[test]
    fn what_is_behind_the_end_is_nothing() {
        let wanted = Wanted {
            first: 10,
            ..PLENTY
        };
        let seen = seen(wanted, b"a\nb\n", 100);
        assert_eq!((seen.lines.len(), seen.total), (0, Some(2)));
    }
}
