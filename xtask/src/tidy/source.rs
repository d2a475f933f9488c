//! A file for the checks. Lines of Rust files are split into code and comment, without the contents
//! of strings.
//!
//! This is a scanner for rustfmt's output, not a parser: an attribute is on one line.

use std::iter;

pub(super) struct File {
    /// Relative to the root of the checkout.
    pub(super) path: String,
    pub(super) text: String,
    /// Empty unless it is a Rust file.
    pub(super) lines: Vec<Line>,
}

#[derive(Default)]
pub(super) struct Line {
    pub(super) code: String,
    pub(super) comment: String,
    /// Part of a test: by the file it is in, or by `#[cfg(test)]`.
    pub(super) test: bool,
}

impl File {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let mut lines = Vec::new();
        if path.ends_with(".rs") {
            lines = split(&text);
            mark_tests(&mut lines, is_test_file(&path));
        }
        Self { path, text, lines }
    }

    /// The lines of a Rust file, numbered from 1.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        iter::zip(1.., &self.lines)
    }
}

/// Returns true if `code` contains `word` as a whole word.
pub(super) fn has_word(code: &str, word: &str) -> bool {
    after_word(code, word).next().is_some()
}

/// Returns the text after each whole `word` in `code`.
pub(super) fn after_word<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).filter_map(move |(at, _)| {
        let rest = &code[at + word.len()..];
        let whole = !code[..at].ends_with(in_name) && !rest.starts_with(in_name);
        whole.then_some(rest)
    })
}

fn is_test_file(path: &str) -> bool {
    path.starts_with("crates/testkit/")
        || path.ends_with("/tests.rs")
        || path.split('/').rev().skip(1).any(|dir| dir == "tests")
}

/// The state of the scanner.
enum Within {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Text,
    RawText { hashes: usize },
}

fn split(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let mut lines = vec![Line::default()];
    let mut within = Within::Code;
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let line = lines.last_mut().expect("`lines` is never empty");
        if rest[0] == '\n' {
            if let Within::LineComment = within {
                within = Within::Code;
            }
            lines.push(Line::default());
            at += 1;
            continue;
        }
        let taken;
        (within, taken) = match within {
            Within::Code => code(rest, line),
            Within::LineComment => {
                line.comment.push(rest[0]);
                (Within::LineComment, 1)
            }
            Within::BlockComment { depth } => block_comment(rest, line, depth),
            Within::Text => match rest {
                ['\\', '\n', ..] => (Within::Text, 1),
                ['\\', _, ..] => (Within::Text, 2),
                ['"', ..] => (Within::Code, 1),
                _ => (Within::Text, 1),
            },
            Within::RawText { hashes } => {
                let end = rest[0] == '"' && count_hashes(&rest[1..]) >= hashes;
                if end {
                    (Within::Code, 1 + hashes)
                } else {
                    (Within::RawText { hashes }, 1)
                }
            }
        };
        at += taken;
    }
    if text.is_empty() || text.ends_with('\n') {
        lines.pop();
    }
    lines
}

fn code(rest: &[char], line: &mut Line) -> (Within, usize) {
    match rest {
        ['/', '/', ..] => (Within::LineComment, 2),
        ['/', '*', ..] => (Within::BlockComment { depth: 1 }, 2),
        ['"', ..] => {
            line.code.push_str("\"\"");
            (Within::Text, 1)
        }
        ['r', after @ ..] if starts_raw_text(line, after) => {
            let hashes = count_hashes(after);
            line.code.push_str("\"\"");
            (Within::RawText { hashes }, 2 + hashes)
        }
        // A character literal, not a lifetime.
        ['\'', '\\', _, after @ ..] => {
            let more = after.iter().take_while(|c| **c != '\'').count();
            line.code.push_str("''");
            (Within::Code, 4 + more)
        }
        ['\'', _, '\'', ..] => {
            line.code.push_str("''");
            (Within::Code, 3)
        }
        _ => {
            line.code.push(rest[0]);
            (Within::Code, 1)
        }
    }
}

/// Returns true if an `r` before `after` opens a raw string: not the last letter of a name, but
/// possibly after the `b` or `c` of a byte or C string.
fn starts_raw_text(line: &Line, after: &[char]) -> bool {
    let before = line.code.strip_suffix(['b', 'c']).unwrap_or(&line.code);
    let in_name = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    !in_name && after.get(count_hashes(after)) == Some(&'"')
}

fn count_hashes(chars: &[char]) -> usize {
    chars.iter().take_while(|c| **c == '#').count()
}

fn block_comment(rest: &[char], line: &mut Line, depth: usize) -> (Within, usize) {
    match rest {
        ['*', '/', ..] if depth == 1 => (Within::Code, 2),
        ['*', '/', ..] => (Within::BlockComment { depth: depth - 1 }, 2),
        ['/', '*', ..] => (Within::BlockComment { depth: depth + 1 }, 2),
        _ => {
            line.comment.push(rest[0]);
            (Within::BlockComment { depth }, 1)
        }
    }
}

/// Marks lines that are compiled for tests only.
fn mark_tests(lines: &mut [Line], whole_file: bool) {
    let whole_file = whole_file
        || lines
            .iter()
            .any(|line| is_test_attribute(&line.code, "#!["));
    let mut from = 0;
    while from < lines.len() {
        let until = if whole_file {
            lines.len()
        } else if is_test_attribute(&lines[from].code, "#[") {
            item_end(lines, from)
        } else {
            from += 1;
            continue;
        };
        lines[from..until]
            .iter_mut()
            .for_each(|line| line.test = true);
        from = until;
    }
}

fn is_test_attribute(code: &str, opening: &str) -> bool {
    let Some(condition) = code.trim_start().strip_prefix(opening) else {
        return false;
    };
    condition.starts_with("cfg(") && has_word(condition, "test") && !condition.contains("not(test")
}

/// Returns the line after the item whose attribute is on line `from`.
fn item_end(lines: &[Line], from: usize) -> usize {
    let mut depth = 0_i32;
    for (number, line) in lines.iter().enumerate().skip(from) {
        for c in line.code.chars() {
            depth += match c {
                '{' | '(' | '[' => 1,
                '}' | ')' | ']' => -1,
                _ => 0,
            };
            if depth < 0 || (depth == 0 && matches!(c, '}' | ';')) {
                return number + 1;
            }
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests;
