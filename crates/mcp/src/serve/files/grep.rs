//! Finds matching lines.

use regex::bytes::Regex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::serve::text;

/// Number of bytes that decide whether a file is binary.
const BINARY_CHECK_BYTES: usize = 8 * 1024;

// A matching line, or a line of its context. Not a doc comment: that would become part of
// the tool's schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::serve) struct FoundLine {
    /// The line number, from 1.
    pub(in crate::serve) number: u64,
    pub(in crate::serve) text: String,
    /// Whether the line doesn't match and is context of one that does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(in crate::serve) context: bool,
}

/// Limits of a search.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) struct SearchLimits {
    /// Context lines before and after each match.
    pub(in crate::serve) context: usize,
    /// Maximum number of matching lines.
    pub(in crate::serve) matches: usize,
    /// Maximum length of a line.
    pub(in crate::serve) line_bytes: usize,
    /// Total size of lines at which the search stops.
    pub(in crate::serve) bytes: usize,
}

/// Reports whether a file is binary: it has a NUL byte near its beginning.
pub(in crate::serve) fn is_binary(content: &[u8]) -> bool {
    let beginning = &content[..content.len().min(BINARY_CHECK_BYTES)];
    memchr::memchr(0, beginning).is_some()
}

/// Returns the matching lines with their context, and whether there are more.
pub(in crate::serve) fn lines(
    content: &[u8],
    pattern: &Regex,
    limits: SearchLimits,
) -> (Vec<FoundLine>, bool) {
    let lines: Vec<&[u8]> = lines_of(content).collect();
    let mut found: Vec<FoundLine> = Vec::new();
    // Lines before this index are in `found` already.
    let mut next = 0;
    let mut matches = 0;
    let mut bytes = 0;
    for (index, line) in lines.iter().enumerate() {
        if !pattern.is_match(line) {
            continue;
        }
        if matches == limits.matches || bytes >= limits.bytes {
            return (found, true);
        }
        matches += 1;
        // The line may be in `found` already, as context of an earlier match.
        let number = index as u64 + 1;
        let mut recent = found.iter_mut().rev().take(limits.context);
        if let Some(line) = recent.find(|line| line.number == number) {
            line.context = false;
        }
        let first = index.saturating_sub(limits.context).max(next);
        let last = (index + limits.context + 1).min(lines.len());
        let added = lines.iter().enumerate().take(last).skip(first);
        found.extend(added.map(|(at, line)| FoundLine {
            number: at as u64 + 1,
            text: text::shorten(&text::decode(line), limits.line_bytes).into_owned(),
            context: at != index,
        }));
        let added = found.iter().rev().take(last.saturating_sub(first));
        bytes += added.map(|line| line.text.len()).sum::<usize>();
        next = next.max(last);
    }
    (found, false)
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

    const LIMITS: SearchLimits = SearchLimits {
        context: 0,
        matches: 10,
        line_bytes: 100,
        bytes: 10_000,
    };

    fn found(text: &str, pattern: &str, limits: SearchLimits) -> (Vec<(u64, String, bool)>, bool) {
        let (lines, more) = lines(text.as_bytes(), &Regex::new(pattern).unwrap(), limits);
        let lines = lines
            .into_iter()
            .map(|line| (line.number, line.text, line.context))
            .collect();
        (lines, more)
    }

    #[test]
    fn finds_lines_with_their_numbers() {
        let (hits, more) = found("one\ntwo\r\nthree\n", "^t.*[oe]$", LIMITS);
        let expected = [(2, "two".to_owned(), false), (3, "three".to_owned(), false)];
        assert_eq!((hits.as_slice(), more), (&expected[..], false));
        assert_eq!(found("", ".*", LIMITS).0, []);
    }

    #[test]
    fn overlapping_context_is_returned_once() {
        let limits = SearchLimits {
            context: 1,
            ..LIMITS
        };
        let (hits, _) = found("a\nx\nb\nx\nx\nc\nd\n", "x", limits);
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
    fn stops_at_the_limits() {
        let limits = SearchLimits {
            matches: 2,
            ..LIMITS
        };
        let (hits, more) = found("x\nx\nx\n", "x", limits);
        assert_eq!((hits.len(), more), (2, true));
        let limits = SearchLimits { bytes: 2, ..LIMITS };
        let (hits, more) = found("x\nx\nx\n", "x", limits);
        assert_eq!((hits.len(), more), (2, true));
        let long = format!("{}x", "ä".repeat(100));
        let limits = SearchLimits {
            line_bytes: 5,
            ..LIMITS
        };
        assert_eq!(found(&long, "x", limits).0[0].1, "ää… (197 more bytes)");
    }

    #[test]
    fn nul_byte_means_binary() {
        assert!(is_binary(b"\x7fELF\0"));
        assert!(!is_binary("Grüße".as_bytes()));
    }
}
