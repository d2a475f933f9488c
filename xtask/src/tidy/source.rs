//! A file as the checks see it. Rust files are split into lines whose code and comments are told
//! apart, with the contents of strings left out, so that naming a thing isn't using it.
//!
//! This is a scanner for rustfmt's output, not a parser: an attribute stands on one line.

use std::iter;

pub(super) struct File {
    /// From the root of the checkout, with `/`.
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

/// Whether `word` stands in `code` on its own, not as a part of a longer name.
pub(super) fn has_word(code: &str, word: &str) -> bool {
    after_word(code, word).next().is_some()
}

/// What follows each `word` that stands on its own in `code`.
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
        || path
            .split('/')
            .rev()
            .skip(1)
            .any(|folder| folder == "tests")
}

/// What the scanner is in the middle of.
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
        let line = lines.last_mut().expect("there is always a last line");
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
        // A character, not a lifetime: it is closed again.
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

/// Whether the `r` between what the line has so far and `after` opens a raw string. It may follow
/// the `b` or `c` of a byte or C string, but isn't the last letter of a name.
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

/// Marks what is compiled for tests alone.
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

/// The line after the item that the attribute on line `from` belongs to: behind its closing brace
/// or its semicolon.
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
