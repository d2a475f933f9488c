//! The lines of a text that match.

use regex::bytes::Regex;

use crate::serve::words;

/// How much of a file says whether it is text.
const LOOKED_AT: usize = 8 * 1024;

/// A line that matches, or that is beside one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Hit {
    /// From 1.
    pub(in crate::serve) line: u64,
    pub(in crate::serve) text: String,
    /// It only stands beside one that does.
    pub(in crate::serve) context: bool,
}

/// How much is wanted.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) struct Wish {
    /// Lines around each one that matches.
    pub(in crate::serve) context: usize,
    /// Lines that match, at most.
    pub(in crate::serve) most: usize,
    /// Bytes of a line, at most.
    pub(in crate::serve) line_bytes: usize,
    /// Bytes in all, at which it is enough.
    pub(in crate::serve) bytes: usize,
}

/// What has a zero in its beginning is no text.
pub(in crate::serve) fn is_binary(content: &[u8]) -> bool {
    let beginning = &content[..content.len().min(LOOKED_AT)];
    memchr::memchr(0, beginning).is_some()
}

/// The lines that match, in order, with what is around them. Says too whether
/// there are more than are wanted.
pub(in crate::serve) fn lines(content: &[u8], pattern: &Regex, wish: Wish) -> (Vec<Hit>, bool) {
    let lines: Vec<&[u8]> = lines_of(content).collect();
    let mut hits: Vec<Hit> = Vec::new();
    // The lines before this one are told already.
    let mut told = 0;
    let mut found = 0;
    let mut bytes = 0;
    for (index, line) in lines.iter().enumerate() {
        if !pattern.is_match(line) {
            continue;
        }
        if found == wish.most || bytes >= wish.bytes {
            return (hits, true);
        }
        found += 1;
        // It may be told already, as what is around another one.
        let number = index as u64 + 1;
        let mut lately = hits.iter_mut().rev().take(wish.context);
        if let Some(hit) = lately.find(|hit| hit.line == number) {
            hit.context = false;
        }
        let first = index.saturating_sub(wish.context).max(told);
        let last = (index + wish.context + 1).min(lines.len());
        let around = lines.iter().enumerate().take(last).skip(first);
        hits.extend(around.map(|(at, line)| Hit {
            line: at as u64 + 1,
            text: words::shortened(&words::text(line), wish.line_bytes).into_owned(),
            context: at != index,
        }));
        let new = hits.iter().rev().take(last.saturating_sub(first));
        bytes += new.map(|hit| hit.text.len()).sum::<usize>();
        told = told.max(last);
    }
    (hits, false)
}

fn lines_of(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = content.strip_suffix(b"\n").unwrap_or(content);
    let lines = (!content.is_empty()).then(|| whole.split(|byte| *byte == b'\n'));
    let lines = lines.into_iter().flatten();
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISH: Wish = Wish {
        context: 0,
        most: 10,
        line_bytes: 100,
        bytes: 10_000,
    };

    fn found(text: &str, pattern: &str, wish: Wish) -> (Vec<(u64, String, bool)>, bool) {
        let (hits, more) = lines(text.as_bytes(), &Regex::new(pattern).unwrap(), wish);
        let hits = hits
            .into_iter()
            .map(|hit| (hit.line, hit.text, hit.context))
            .collect();
        (hits, more)
    }

    #[test]
    fn lines_are_found_with_their_numbers() {
        let (hits, more) = found("one\ntwo\r\nthree\n", "^t.*[oe]$", WISH);
        let expected = [(2, "two".to_owned(), false), (3, "three".to_owned(), false)];
        assert_eq!((hits.as_slice(), more), (&expected[..], false));
        assert_eq!(found("", ".*", WISH).0, []);
    }

    #[test]
    fn what_is_around_is_told_once() {
        let wish = Wish { context: 1, ..WISH };
        let (hits, _) = found("a\nx\nb\nx\nx\nc\nd\n", "x", wish);
        let lines: Vec<_> = hits
            .iter()
            .map(|(line, _, context)| (*line, *context))
            .collect();
        assert_eq!(
            lines,
            [
                (1, true),
                (2, false),
                (3, true),
                (4, false),
                (5, false),
                (6, true)
            ]
        );
    }

    #[test]
    fn there_is_an_end_to_it() {
        let wish = Wish { most: 2, ..WISH };
        let (hits, more) = found("x\nx\nx\n", "x", wish);
        assert_eq!((hits.len(), more), (2, true));
        let wish = Wish { bytes: 2, ..WISH };
        let (hits, more) = found("x\nx\nx\n", "x", wish);
        assert_eq!((hits.len(), more), (2, true));
        let long = format!("{}x", "ä".repeat(100));
        let wish = Wish {
            line_bytes: 5,
            ..WISH
        };
        assert_eq!(found(&long, "x", wish).0[0].1, "ää… (197 more bytes)");
    }

    #[test]
    fn programs_are_no_text() {
        assert!(is_binary(b"\x7fELF\0"));
        assert!(!is_binary("Grüße".as_bytes()));
    }
}
