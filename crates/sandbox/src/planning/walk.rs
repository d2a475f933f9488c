//! A pattern on its way through a tree: what of it is behind us, name by name.
//!
//! A directory is read once, however many names are in it, and nothing is allocated for a name.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use super::pattern::{Pattern, SLASH, Step};

/// Somewhere below the base of a pattern.
pub(super) struct Walk<'p> {
    steps: &'p [Step],
    /// Behind the directory we are in,
    behind: States,
    /// and behind a name in it.
    here: States,
    /// What comes next is written here.
    next: States,
}

/// What a name means to a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bearing {
    /// It is meant.
    pub(super) matches: bool,
    /// Something below it could be meant, if it is a directory.
    pub(super) leads_below: bool,
}

impl<'p> Walk<'p> {
    /// At the base.
    pub(super) fn new(pattern: &'p Pattern) -> Self {
        let steps = pattern.steps();
        let states = States::new(steps.len() + 1);
        let mut walk = Walk {
            steps,
            behind: states.clone(),
            here: states.clone(),
            next: states,
        };
        walk.enter(Path::new(""));
        walk
    }

    /// Goes to a directory, relative to the base.
    pub(super) fn enter(&mut self, directory: &Path) {
        self.here.clear();
        self.here.add(0);
        close(self.steps, &mut self.here);
        if !directory.as_os_str().is_empty() {
            self.read(directory.as_os_str());
            self.step(SLASH);
        }
        self.behind.copy(&self.here);
    }

    /// What this name in the directory means.
    pub(super) fn look_at(&mut self, name: &OsStr) -> Bearing {
        self.here.copy(&self.behind);
        self.read(name);
        let end = self.steps.len();
        let matches = self.here.has(end);
        self.step(SLASH);
        let leads_below = self.here.iter().any(|at| at < end);
        Bearing {
            matches,
            leads_below,
        }
    }

    /// A byte that is no part of a letter is a letter of its own.
    fn read(&mut self, text: &OsStr) {
        let beyond = u32::from(char::MAX) + 1;
        for chunk in text.as_bytes().utf8_chunks() {
            for letter in chunk.valid().chars() {
                self.step(u32::from(letter));
            }
            for byte in chunk.invalid() {
                self.step(beyond + u32::from(*byte));
            }
        }
    }

    fn step(&mut self, letter: u32) {
        self.next.clear();
        for at in self.here.iter() {
            match self.steps.get(at) {
                Some(Step::Star) if letter != SLASH => self.next.add(at),
                Some(Step::Deep) => self.next.add(at),
                Some(one) if one.takes(letter) => self.next.add(at + 1),
                _ => {}
            }
        }
        close(self.steps, &mut self.next);
        std::mem::swap(&mut self.here, &mut self.next);
    }
}

/// Adds the states that take no letter to reach. They lie ahead, so one pass finds all of them.
fn close(steps: &[Step], states: &mut States) {
    for word in 0..states.0.len() {
        let mut seen = 0;
        // Those that are added on the way may be in this very word.
        while let Some(bit) = lowest(states.0[word] & !seen) {
            seen |= 1 << bit;
            let at = word * WORD + bit;
            match steps.get(at) {
                Some(Step::Star | Step::Deep) => states.add(at + 1),
                Some(Step::Optional) => {
                    states.add(at + 1);
                    states.add(at + 3);
                }
                _ => {}
            }
        }
    }
}

const WORD: usize = u64::BITS as usize;

/// Places in the automaton, a bit for each.
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
