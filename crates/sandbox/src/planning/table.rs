//! The rules of a plan under construction.

use std::{
    collections::BTreeMap,
    ops::Bound,
    path::{Path, PathBuf},
};

use crate::{Access, Origin, PathState, Rule};

/// One rule per path, sorted: a parent path comes before the paths below it.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) rules: BTreeMap<PathBuf, Rule>,
}

impl Table {
    /// Adds a rule. Of two rules for the same path the one with precedence stays: deny before write
    /// before read.
    pub(super) fn add(&mut self, rule: Rule) {
        match self.rules.get_mut(&rule.path) {
            Some(present) if present.access >= rule.access => {}
            Some(present) => *present = rule,
            None => {
                self.rules.insert(rule.path.clone(), rule);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values()
    }

    /// Returns the rule that applies to a path.
    pub(super) fn covering(&self, path: &Path) -> Option<&Rule> {
        path.ancestors().find_map(|above| self.rules.get(above))
    }

    /// Returns the rule that applies to a path's parent.
    pub(super) fn above(&self, path: &Path) -> Option<&Rule> {
        path.parent().and_then(|parent| self.covering(parent))
    }

    pub(super) fn is_writable(&self, path: &Path) -> bool {
        let covering = self.covering(path);
        covering.is_some_and(|rule| rule.access == Access::Write)
    }

    /// Returns whether a path below has a rule.
    pub(super) fn has_below(&self, path: &Path) -> bool {
        self.below(path).next().is_some()
    }

    /// Returns whether a path below has a rule that grants it.
    pub(super) fn grants_below(&self, path: &Path) -> bool {
        self.below(path).any(|rule| rule.access != Access::Deny)
    }

    fn below(&self, path: &Path) -> impl Iterator<Item = &Rule> {
        let from = (Bound::Excluded(path.to_owned()), Bound::Unbounded);
        let rules = self.rules.range(from).map(|(_, rule)| rule);
        rules.take_while(move |rule| rule.path.starts_with(path))
    }

    /// Removes the rules at and below a path whose access exceeds the allowed one. Returns whether there
    /// were any.
    pub(super) fn remove_below(&mut self, path: &Path, exceeds: impl Fn(Access) -> bool) -> bool {
        let count = self.rules.len();
        self.rules
            .retain(|below, rule| !below.starts_with(path) || !exceeds(rule.access));
        self.rules.len() < count
    }

    /// Removes denials of paths that no rule grants.
    pub(super) fn without_redundant_denials(mut self) -> Self {
        let redundant: Vec<PathBuf> = self
            .iter()
            .filter(|rule| rule.access == Access::Deny)
            .filter(|rule| {
                let above = self.above(&rule.path);
                above.is_none_or(|above| above.access == Access::Deny)
            })
            .map(|rule| rule.path.clone())
            .collect();
        for path in redundant {
            self.rules.remove(&path);
        }
        self
    }

    /// Pins the directories between a writable path and the rules below it, also writable ones: those
    /// may have exceptions of their own.
    pub(super) fn pin(&mut self) {
        let mut pins = Vec::new();
        for rule in self.iter() {
            let Some(above) = self.above(&rule.path) else {
                continue;
            };
            if above.access != Access::Write {
                continue;
            }
            let between = rule.path.ancestors().skip(1);
            pins.extend(
                between
                    .take_while(|path| *path != above.path)
                    .map(Path::to_owned),
            );
        }
        for path in pins {
            let (access, presence) = (Access::Write, PathState::Directory);
            self.add(Rule::new(path, access, presence, Origin::Pinned));
        }
    }
}
