//! A file for the checks, and what they find. Lines of Rust files are split into code and comment,
//! without the contents of strings.
//!
//! This is a scanner for rustfmt's output, not a parser: an attribute is on one line.

use std::fmt;
use std::iter;
use std::sync::LazyLock;

use regex::Regex;

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

    /// Reports `what` at each line of a Rust file that `is_wrong` returns true for.
    pub(super) fn find(&self, what: &str, is_wrong: impl Fn(&Line) -> bool) -> Vec<Finding> {
        self.numbered()
            .filter(|(_, line)| is_wrong(line))
            .map(|(number, _)| Finding::new(self, number, what))
            .collect()
    }
}

/// A violated rule with its position.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    /// The violation and the remedy.
    what: String,
}

impl Finding {
    pub(super) fn new(file: &File, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: file.path.clone(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Formats findings, for tests.
#[cfg(test)]
pub(super) fn printed(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
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

/// Matches a comment, a string or a character. A lifetime is not a character, and a name that ends
/// in `r` does not open a raw string. Comments nest at most once, and raw strings have at most two
/// `#`: one with more is scanned like a string without `r`, so a quote in it ends it.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    // A quote is \x22.
    let raw = r"\b(?<prefix>[bc]?)r(?:\x22[^\x22]*\x22|#\x22.*?\x22#|##\x22.*?\x22##)";
    let comment = r"//(?<line>[^\n]*)|/\*(?<block>(?:/\*.*?\*/|.)*?)\*/";
    let text = r"\x22(?:\\.|[^\x22\\])*\x22";
    let character = r"'(?:\\.[^']*|[^\\'\n])'";
    Regex::new(&format!("(?s){raw}|{comment}|{text}|{character}")).expect("a valid pattern")
});

fn split(text: &str) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    let mut at = 0;
    for token in TOKEN.captures_iter(text) {
        let whole = token.get_match();
        append(&mut lines, &text[at..whole.start()], |line| &mut line.code);
        at = whole.end();
        if let Some(comment) = token.name("line").or(token.name("block")) {
            append(&mut lines, comment.as_str(), |line| &mut line.comment);
            continue;
        }
        let prefix = token.name("prefix").map_or("", |prefix| prefix.as_str());
        let quote = &text[at - 1..at].replace('#', "\"");
        let breaks = "\n".repeat(whole.as_str().matches('\n').count());
        let literal = format!("{prefix}{quote}{quote}{breaks}");
        append(&mut lines, &literal, |line| &mut line.code);
    }
    append(&mut lines, &text[at..], |line| &mut line.code);
    if text.is_empty() || text.ends_with('\n') {
        lines.pop();
    }
    lines
}

/// Appends `text` to a part of the last line, and of new lines at its line breaks.
fn append(lines: &mut Vec<Line>, text: &str, part: fn(&mut Line) -> &mut String) {
    for (number, piece) in text.split('\n').enumerate() {
        if number > 0 {
            lines.push(Line::default());
        }
        part(lines.last_mut().expect("`lines` is never empty")).push_str(piece);
    }
}

/// Marks lines that are compiled for tests only.
fn mark_tests(lines: &mut [Line], whole_file: bool) {
    let inner = |line: &Line| is_test_attribute(&line.code, "#![");
    let mut until = 0;
    if whole_file || lines.iter().any(inner) {
        until = lines.len();
    }
    for at in 0..lines.len() {
        if at >= until && is_test_attribute(&lines[at].code, "#[") {
            until = item_end(lines, at);
        }
        lines[at].test = at < until;
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
