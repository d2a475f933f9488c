//! Path patterns.
//!
//! `*` and `?` match within a name, `**` across names, and `**/` also matches no directory. `[a-z]` matches
//! a character of a set, `[!a]` one outside it, `{a,b}` either alternative, and a backslash escapes the next
//! character. An unclosed bracket or brace is literal.
//!
//! The `globset` crate can't replace this: it rejects unclosed brackets, lets `**` cross `/` only as a whole
//! component, and can't tell whether a directory may contain matches, which a scan needs to skip
//! directories.

use std::path::{Component, Path, PathBuf};

/// The maximum number of expansions of one pattern.
const MAX_ALTERNATIVES: usize = 256;

/// A pattern and the directory where its scan starts.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// The start of the scan: absolute, including the literal components at the start of the pattern.
    pub(super) base: PathBuf,
    /// Matches paths relative to the base. Empty if the pattern is a literal path.
    pub(super) steps: Vec<PatternToken>,
}

/// One step of the matching automaton.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternToken {
    /// This character.
    Char(u32),
    /// Any character but a slash.
    AnyChar,
    /// A character in a set, or outside of it.
    Set {
        negated: bool,
        ranges: Vec<(u32, u32)>,
    },
    /// Any sequence of characters but slashes.
    Star,
    /// Any sequence of characters.
    Deep,
    /// The next two steps, or none of them.
    Optional,
}

pub(super) const SLASH: u32 = '/' as u32;

impl Pattern {
    /// Parses a pattern and expands its braces. Returns none if it exceeds a limit.
    pub(super) fn all(base: &Path, text: &str, max_bytes: usize) -> Option<Vec<Pattern>> {
        if text.len() > max_bytes {
            return None;
        }
        let expanded = expand_braces(text, MAX_ALTERNATIVES)?;
        let patterns = expanded.iter().map(|text| Pattern::new(base, text));
        Some(patterns.collect())
    }

    fn new(base: &Path, text: &str) -> Pattern {
        let mut base = if text.starts_with('/') {
            PathBuf::from("/")
        } else {
            base.to_owned()
        };
        let names: Vec<&str> = text
            .split('/')
            .filter(|name| !matches!(*name, "" | "."))
            .collect();
        let literal: Vec<String> = names.iter().map_while(|name| literal(name)).collect();
        let rest = &names[literal.len()..];
        base.extend(&literal);
        let mut steps = Vec::new();
        for (at, name) in rest.iter().enumerate() {
            let last = at + 1 == rest.len();
            match (*name, last) {
                ("**", false) => {
                    steps.extend([
                        PatternToken::Optional,
                        PatternToken::Deep,
                        PatternToken::Char(SLASH),
                    ]);
                    continue;
                }
                (name, _) => parse_name(name, &mut steps),
            }
            if !last {
                steps.push(PatternToken::Char(SLASH));
            }
        }
        Pattern {
            base: normalize(&base),
            steps,
        }
    }

    /// Returns whether the pattern is a literal path.
    pub(super) fn is_literal(&self) -> bool {
        self.steps.is_empty()
    }
}

impl PatternToken {
    /// Returns whether the step consumes this character.
    pub(super) fn matches(&self, character: u32) -> bool {
        match self {
            PatternToken::Char(own) => *own == character,
            PatternToken::AnyChar => character != SLASH,
            PatternToken::Set { negated, ranges } => {
                let inside = ranges
                    .iter()
                    .any(|(from, to)| (*from..=*to).contains(&character));
                character != SLASH && inside != *negated
            }
            PatternToken::Star | PatternToken::Deep | PatternToken::Optional => false,
        }
    }
}

/// Returns the name that a component matches, if it is literal.
fn literal(name: &str) -> Option<String> {
    let mut steps = Vec::new();
    parse_name(name, &mut steps);
    let character = |step: &PatternToken| match step {
        PatternToken::Char(character) => char::from_u32(*character),
        _ => None,
    };
    steps.iter().map(character).collect()
}

fn parse_name(name: &str, steps: &mut Vec<PatternToken>) {
    let name: Vec<char> = name.chars().collect();
    let mut at = 0;
    while at < name.len() {
        let rest = &name[at..];
        let (step, length) = match rest {
            ['*', '*', ..] => {
                let stars = rest
                    .iter()
                    .take_while(|character| **character == '*')
                    .count();
                (PatternToken::Deep, stars)
            }
            ['*', ..] => (PatternToken::Star, 1),
            ['?', ..] => (PatternToken::AnyChar, 1),
            ['\\', escaped, ..] => (PatternToken::Char(u32::from(*escaped)), 2),
            ['[', ..] => parse_set(rest).unwrap_or((PatternToken::Char(u32::from('[')), 1)),
            [character, ..] => (PatternToken::Char(u32::from(*character)), 1),
            [] => break,
        };
        steps.push(step);
        at += length;
    }
}

/// Parses a set at the start. Returns it with its length; none if it isn't closed.
fn parse_set(text: &[char]) -> Option<(PatternToken, usize)> {
    let negated = matches!(text.get(1), Some('!' | '^'));
    let first = if negated { 2 } else { 1 };
    // A closing bracket in first position is part of the set.
    let close = text.iter().skip(first + 1).position(|c| *c == ']')? + first + 1;
    let inside = &text[first..close];
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < inside.len() {
        let from = u32::from(inside[at]);
        if let Some(['-', to]) = inside.get(at + 1..at + 3) {
            ranges.push((from, u32::from(*to)));
            at += 3;
        } else {
            ranges.push((from, from));
            at += 1;
        }
    }
    Some((PatternToken::Set { negated, ranges }, close + 1))
}

fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}

/// Expands all groups of a pattern. Returns none if there are more than `limit` results. An unclosed
/// group is literal.
fn expand_braces(text: &str, limit: usize) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        if done.len() + open.len() >= limit {
            return None;
        }
        match first_group(&text) {
            None => done.push(text),
            Some((before, choices, after)) => {
                let each = choices.iter().rev();
                open.extend(each.map(|choice| format!("{before}{choice}{after}")));
            }
        }
    }
    Some(done)
}

/// Finds the innermost group that is closed first. Returns the text before it, its alternatives and the
/// text after it.
fn first_group(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let mut start = None;
    let mut commas = Vec::new();
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (character, start) {
            ('\\', _) => escaped = true,
            ('{', _) => {
                start = Some(at);
                commas.clear();
            }
            (',', Some(_)) => commas.push(at),
            ('}', Some(from)) => {
                let mut choices = Vec::new();
                let mut begin = from + 1;
                for comma in commas.into_iter().chain([at]) {
                    choices.push(&text[begin..comma]);
                    begin = comma + 1;
                }
                return Some((&text[..from], choices, &text[at + 1..]));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::expand_braces;

    #[test]
    fn groups_are_expanded_and_other_text_is_kept() {
        let all = |text: &str| expand_braces(text, 64).unwrap();
        assert_eq!(all("a"), ["a"]);
        assert_eq!(all("*.{pem,key}"), ["*.pem", "*.key"]);
        assert_eq!(all("{a,b}/{c,}"), ["a/c", "a/", "b/c", "b/"]);
        assert_eq!(all("{a,{b,c}d}"), ["a", "bd", "a", "cd"]);
        assert_eq!(all("{a,b"), ["{a,b"]);
        assert_eq!(all("a}b{"), ["a}b{"]);
        assert_eq!(all("\\{a,b}"), ["\\{a,b}"]);
        assert_eq!(all("{{a,b}"), ["{a", "{b"]);
    }

    #[test]
    fn too_many_results_are_rejected() {
        assert_eq!(expand_braces(&"{a,b}".repeat(20), 64), None);
    }
}
