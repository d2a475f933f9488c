//! Patterns of paths.
//!
//! `*` and `?` match within a name, `**` across names, and `**/` also stands for no directory at
//! all. `[a-z]` is one of a set, `[!a]` one outside it, `{a,b}` either, and a backslash takes the
//! meaning from what follows. What is not closed is literal.

use std::path::{Component, Path, PathBuf};

/// How many patterns one with alternatives may stand for.
const MAX_ALTERNATIVES: usize = 256;

/// A pattern, with the directory where looking for it starts.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// Absolute. What the pattern says in plain letters at its beginning is part of it.
    pub(super) base: PathBuf,
    /// About paths below the base; none if the pattern is just a path.
    steps: Vec<Step>,
    /// Whether the directories above a match play no part.
    pub(super) by_name_alone: bool,
}

/// One step of the automaton.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This letter.
    Letter(u32),
    /// Any letter of a name.
    One,
    /// One of a set, or one outside of it.
    Set {
        negated: bool,
        ranges: Vec<(u32, u32)>,
    },
    /// Any letters of a name.
    Star,
    /// Any letters.
    Deep,
    /// The next two steps, or neither of them.
    Optional,
}

pub(super) const SLASH: u32 = '/' as u32;

impl Pattern {
    /// The patterns that a text stands for; none if it is out of bounds.
    pub(super) fn all(base: &Path, text: &str, max_bytes: usize) -> Option<Vec<Pattern>> {
        if text.len() > max_bytes {
            return None;
        }
        let plain = super::braces::alternatives(text, MAX_ALTERNATIVES)?;
        Some(plain.iter().map(|text| Pattern::new(base, text)).collect())
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
        let plain: Vec<String> = names.iter().map_while(|name| plain(name)).collect();
        let rest = &names[plain.len()..];
        base.extend(&plain);
        let mut steps = Vec::new();
        for (at, name) in rest.iter().enumerate() {
            let last = at + 1 == rest.len();
            match (*name, last) {
                ("**", false) => {
                    steps.extend([Step::Optional, Step::Deep, Step::Letter(SLASH)]);
                    continue;
                }
                (name, _) => read_name(name, &mut steps),
            }
            if !last {
                steps.push(Step::Letter(SLASH));
            }
        }
        Pattern {
            base: normal(&base),
            by_name_alone: matches!(rest, ["**", name] if !name.contains("**")),
            steps,
        }
    }

    /// Whether the base itself is all that is meant.
    pub(super) fn is_plain(&self) -> bool {
        self.steps.is_empty()
    }

    /// What it says about paths below the base.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl Step {
    /// Whether it is this letter that it stands for.
    pub(super) fn takes(&self, letter: u32) -> bool {
        match self {
            Step::Letter(own) => *own == letter,
            Step::One => letter != SLASH,
            Step::Set { negated, ranges } => {
                let inside = ranges
                    .iter()
                    .any(|(from, to)| (*from..=*to).contains(&letter));
                letter != SLASH && inside != *negated
            }
            Step::Star | Step::Deep | Step::Optional => false,
        }
    }
}

/// The name that is meant, if it is just one.
fn plain(name: &str) -> Option<String> {
    let mut steps = Vec::new();
    read_name(name, &mut steps);
    let letter = |step: &Step| match step {
        Step::Letter(letter) => char::from_u32(*letter),
        _ => None,
    };
    steps.iter().map(letter).collect()
}

fn read_name(name: &str, steps: &mut Vec<Step>) {
    let name: Vec<char> = name.chars().collect();
    let mut at = 0;
    while at < name.len() {
        let rest = &name[at..];
        let (step, taken) = match rest {
            ['*', '*', ..] => {
                let stars = rest.iter().take_while(|letter| **letter == '*').count();
                (Step::Deep, stars)
            }
            ['*', ..] => (Step::Star, 1),
            ['?', ..] => (Step::One, 1),
            ['\\', letter, ..] => (Step::Letter(u32::from(*letter)), 2),
            ['[', ..] => read_set(rest).unwrap_or((Step::Letter(u32::from('[')), 1)),
            [letter, ..] => (Step::Letter(u32::from(*letter)), 1),
            [] => break,
        };
        steps.push(step);
        at += taken;
    }
}

/// A set at the beginning of these letters, and how many of them it takes; none if it isn't closed.
fn read_set(letters: &[char]) -> Option<(Step, usize)> {
    let negated = matches!(letters.get(1), Some('!' | '^'));
    let first = if negated { 2 } else { 1 };
    // A bracket that comes first is one of the set.
    let close = letters.iter().skip(first + 1).position(|c| *c == ']')? + first + 1;
    let inside = &letters[first..close];
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
    Some((Step::Set { negated, ranges }, close + 1))
}

fn normal(path: &Path) -> PathBuf {
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
