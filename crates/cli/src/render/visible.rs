//! Makes text of others visible. Servers, MCP servers, other clients and file names can contain
//! characters that control the terminal, reorder the text or can't be seen. Everything that prints
//! such text uses these functions; the output of a process and the content of a file stay as they
//! are.

use std::{borrow::Cow, fmt::Write as _};

/// Characters besides control characters that reorder text or can't be seen: bidirectional and other
/// invisible format characters, line and paragraph separators, fillers, tags, and the variation
/// selectors of that plane. See
/// <https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing>.
const HIDDEN: [(char, char); 16] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Returns whether a character controls the terminal, reorders text or can't be seen.
pub(crate) fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    c.is_control()
        || HIDDEN
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&c))
}

/// Escapes hidden characters, including newlines and tabs.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |_| false, |c, shown| shown.extend(c.escape_default()))
}

/// Escapes hidden characters of a text with several lines: newlines and tabs stay.
pub(crate) fn visible_lines(text: &str) -> Cow<'_, str> {
    let is_layout = |c| matches!(c, '\n' | '\t');
    match escape(text, is_layout, |c, shown| shown.extend(c.escape_default())) {
        // A return before a newline only ends the line.
        Cow::Owned(shown) => shown.replace("\\r\n", "\n").into(),
        shown => shown,
    }
}

/// Escapes hidden characters of a JSON text, which stays the same value: outside of strings JSON
/// has none but newlines.
pub(crate) fn visible_json(json: &str) -> Cow<'_, str> {
    escape(
        json,
        |c| c == '\n',
        |c, shown| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string can't fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        },
    )
}

fn escape(
    text: &str,
    is_kept: impl Fn(char) -> bool,
    push: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let is_escaped = |c: char| is_hidden(c) && !is_kept(c);
    let Some(first) = text.find(is_escaped) else {
        return text.into();
    };
    let mut shown = text[..first].to_owned();
    for c in text[first..].chars() {
        if is_escaped(c) {
            push(c, &mut shown);
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// Escapes hidden characters of text that arrives in chunks, which may split a character.
#[derive(Debug, Default)]
pub(crate) struct VisibleStream {
    /// The beginning of a character, at most three bytes.
    split: Vec<u8>,
}

impl VisibleStream {
    /// The text up to the last complete character; invalid bytes are replaced.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.split);
        bytes.extend_from_slice(chunk);
        let incomplete = match bytes.utf8_chunks().last() {
            // Only a cut character can be completed; see `Utf8Chunk::invalid`.
            Some(last) if is_beginning(last.invalid()) => last.invalid().len(),
            _ => 0,
        };
        self.split = bytes.split_off(bytes.len() - incomplete);
        let text = String::from_utf8_lossy(&bytes);
        visible_lines(&text).into_owned()
    }
}

/// Returns whether bytes are the beginning of a valid character.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}]0;x\u{7}\u{9b}2J\r\n\tb\u{202e}c\u{200d}\u{e0041}\u{7f}";

    #[test]
    fn hidden_characters_are_escaped() {
        assert_eq!(
            visible(HOSTILE),
            r"a\u{1b}]0;x\u{7}\u{9b}2J\r\n\tb\u{202e}c\u{200d}\u{e0041}\u{7f}"
        );
        assert_eq!(
            visible_lines(HOSTILE),
            "a\\u{1b}]0;x\\u{7}\\u{9b}2J\n\tb\\u{202e}c\\u{200d}\\u{e0041}\\u{7f}"
        );
        assert_eq!(visible_lines("a\rb"), r"a\rb");
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in [
            "",
            "make -j8",
            "naïve Größe 漢字\u{3000}عربي ❤\u{fe0f}",
            r"C:\x1b",
        ] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn escaped_json_is_the_same_value() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE, 1, null] });
        for json in [value.to_string(), format!("{value:#}")] {
            let shown = visible_json(&json);
            assert!(!shown.replace('\n', "").contains(is_hidden), "{shown}");
            let parsed: serde_json::Value = serde_json::from_str(&shown).unwrap();
            assert_eq!(parsed, value);
        }
    }

    #[test]
    fn chunks_may_split_characters() {
        let text = "é\u{1b}漢\u{202e}❤\n";
        let mut stream = VisibleStream::default();
        let shown: String = text.bytes().map(|byte| stream.push(&[byte])).collect();
        assert_eq!(shown, visible_lines(text));
        assert_eq!(stream.push(b"\x9b1m\xffx\xe6\xbc"), "\u{fffd}1m\u{fffd}x");
        assert_eq!(stream.push(b"!"), "\u{fffd}!");
    }
}
