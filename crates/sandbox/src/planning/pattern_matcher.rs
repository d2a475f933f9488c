//! Matches a pattern against the names of a directory tree.
//!
//! The automaton's states for a directory are computed once for all names in it, and matching a name
//! doesn't allocate.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use super::pattern::{Pattern, PatternToken, SLASH};

/// Matches a pattern in one directory at a time.
pub(super) struct PatternMatcher<'p> {
    steps: &'p [PatternToken],
    /// The states after the current directory.
    directory: States,
    /// The states after the characters consumed so far.
    current: States,
    /// Buffer for the next states.
    next: States,
}

/// The relation of a name to a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameMatch {
    /// The name matches.
    pub(super) matches: bool,
    /// A path below it may match, if it is a directory.
    pub(super) may_match_below: bool,
}

impl<'p> PatternMatcher<'p> {
    /// Starts at the pattern's base.
    pub(super) fn new(pattern: &'p Pattern) -> Self {
        let steps = &pattern.steps[..];
        let states = States::new(steps.len() + 1);
        let mut walk = PatternMatcher {
            steps,
            directory: states.clone(),
            current: states.clone(),
            next: states,
        };
        walk.enter(Path::new(""));
        walk
    }

    /// Enters a directory, given relative to the base.
    pub(super) fn enter(&mut self, directory: &Path) {
        self.current.clear();
        self.current.add(0);
        add_epsilon(self.steps, &mut self.current);
        if !directory.as_os_str().is_empty() {
            self.consume(directory.as_os_str());
            self.step(SLASH);
        }
        self.directory.copy(&self.current);
    }

    /// Matches a name in the current directory.
    pub(super) fn match_name(&mut self, name: &OsStr) -> NameMatch {
        self.current.copy(&self.directory);
        self.consume(name);
        let end = self.steps.len();
        let matches = self.current.has(end);
        self.step(SLASH);
        let may_match_below = self.current.iter().any(|at| at < end);
        NameMatch {
            matches,
            may_match_below,
        }
    }

    /// Consumes a text. A byte that isn't valid UTF-8 counts as a character of its own.
    fn consume(&mut self, text: &OsStr) {
        let beyond = u32::from(char::MAX) + 1;
        for chunk in text.as_bytes().utf8_chunks() {
            for character in chunk.valid().chars() {
                self.step(u32::from(character));
            }
            for byte in chunk.invalid() {
                self.step(beyond + u32::from(*byte));
            }
        }
    }

    fn step(&mut self, character: u32) {
        self.next.clear();
        for at in self.current.iter() {
            match self.steps.get(at) {
                Some(PatternToken::Star) if character != SLASH => self.next.add(at),
                Some(PatternToken::Deep) => self.next.add(at),
                Some(one) if one.matches(character) => self.next.add(at + 1),
                _ => {}
            }
        }
        add_epsilon(self.steps, &mut self.next);
        std::mem::swap(&mut self.current, &mut self.next);
    }
}

/// Adds the states that are reachable without a character. All of them come later in the list, so one pass
/// is enough.
fn add_epsilon(steps: &[PatternToken], states: &mut States) {
    for word in 0..states.0.len() {
        let mut seen = 0;
        // States may be added to the word that is being read.
        while let Some(bit) = lowest(states.0[word] & !seen) {
            seen |= 1 << bit;
            let at = word * WORD + bit;
            match steps.get(at) {
                Some(PatternToken::Star | PatternToken::Deep) => states.add(at + 1),
                Some(PatternToken::Optional) => {
                    states.add(at + 1);
                    states.add(at + 3);
                }
                _ => {}
            }
        }
    }
}

const WORD: usize = u64::BITS as usize;

/// A set of automaton states, one bit each.
#[derive(Clone, Debug)]
struct States(Box<[u64]>);

impl States {
    fn new(count: usize) -> Self {
        States(vec![0; count.div_ceil(WORD)].into())
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    fn copy(&mut self, other: &States) {
        self.0.copy_from_slice(&other.0);
    }

    fn add(&mut self, at: usize) {
        self.0[at / WORD] |= 1 << (at % WORD);
    }

    fn has(&self, at: usize) -> bool {
        self.0[at / WORD] & (1 << (at % WORD)) != 0
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(word, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let bit = lowest(left)?;
                left &= left - 1;
                Some(word * WORD + bit)
            })
        })
    }
}

fn lowest(bits: u64) -> Option<usize> {
    (bits != 0).then_some(bits.trailing_zeros() as usize)
}
