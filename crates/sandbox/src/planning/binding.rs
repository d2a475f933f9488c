//! What the entries of a policy mean on this host.

use std::path::{Component, Path, PathBuf};

use super::{Bounds, Child, PlanError, minimal, pattern::Pattern};
use crate::{
    Access, Warning, Why,
    policy::{Entry, Missing, Place, Policy, Restricted, Special},
};

/// Patterns with this before them apply to each project root.
const EACH_PROJECT_ROOT: &str = "codex-project-roots://";

/// The entries, each bound to paths.
#[derive(Debug, Default)]
pub(super) struct Bound {
    pub(super) paths: Vec<BoundPath>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) warnings: Vec<Warning>,
}

/// An absolute path, links and all.
#[derive(Debug)]
pub(super) struct BoundPath {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) why: Why,
    pub(super) absence: Absence,
}

/// What it means that something to write isn't there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// An error.
    Matters,
    /// Worth a word.
    Warns,
    /// Nothing.
    Fine,
}

pub(super) fn bind(
    policy: &Policy,
    files: &Restricted,
    child: &Child<'_>,
    bounds: &Bounds,
) -> Result<Bound, PlanError> {
    let count = files
        .entries
        .len()
        .saturating_mul(policy.workspace_roots.len().max(1));
    if count > bounds.entries {
        let limit = bounds.entries;
        return Err(PlanError::ManyEntries { count, limit });
    }
    let mut bound = Bound::default();
    for entry in &files.entries {
        match &entry.place {
            Place::Path(path) => bound.path(path.clone(), entry),
            Place::Special(special) => bound.special(special, entry, policy, child)?,
            Place::Pattern(text) => bound.pattern(text, entry, policy, bounds)?,
        }
    }
    Ok(bound)
}

impl Bound {
    fn path(&mut self, path: PathBuf, entry: &Entry) {
        let absence = match entry.missing {
            Missing::Matters => Absence::Matters,
            Missing::Skip => Absence::Fine,
        };
        self.push(path, entry, Why::Entry, absence);
    }

    fn push(&mut self, path: PathBuf, entry: &Entry, why: Why, absence: Absence) {
        self.paths.push(BoundPath {
            path,
            access: entry.access,
            why,
            absence,
        });
    }

    fn special(
        &mut self,
        special: &Special,
        entry: &Entry,
        policy: &Policy,
        child: &Child<'_>,
    ) -> Result<(), PlanError> {
        match special {
            Special::Root => self.path("/".into(), entry),
            Special::Minimal => {
                for path in minimal::paths(policy.network) {
                    self.push(path.into(), entry, Why::Minimal, Absence::Fine);
                }
            }
            Special::ProjectRoots { below } => {
                check_subpath(below)?;
                for root in &policy.workspace_roots {
                    let path: PathBuf = root.join(below).components().collect();
                    self.path(path, entry);
                }
            }
            Special::Tmpdir => match child.tmpdir {
                Some(path) if path.is_absolute() => {
                    self.push(path.to_owned(), entry, Why::Entry, Absence::Warns);
                }
                Some(path) => self.warnings.push(Warning::Tmpdir(path.to_owned())),
                None => {}
            },
            Special::SlashTmp => self.push("/tmp".into(), entry, Why::Entry, Absence::Warns),
            Special::Unknown(name) => {
                let name = name.chars().take(100).collect();
                self.warnings.push(Warning::UnknownSpecial(name));
            }
        }
        Ok(())
    }

    fn pattern(
        &mut self,
        text: &str,
        entry: &Entry,
        policy: &Policy,
        bounds: &Bounds,
    ) -> Result<(), PlanError> {
        if entry.access != Access::Deny {
            return Err(PlanError::GrantingPattern(start_of(text)));
        }
        if text.is_empty() {
            return Err(PlanError::EmptyPattern);
        }
        let (text, bases) = match text.strip_prefix(EACH_PROJECT_ROOT) {
            Some(rest) => (
                rest.trim_start_matches('/'),
                policy.workspace_roots.as_slice(),
            ),
            None => (text, std::slice::from_ref(&policy.cwd)),
        };
        for base in bases {
            let found = Pattern::all(base, text, bounds.pattern_bytes);
            self.patterns
                .extend(found.ok_or_else(|| PlanError::LongPattern {
                    start: start_of(text),
                    limit: bounds.pattern_bytes,
                })?);
            // Each alternative is an entry of its own.
            let (count, limit) = (self.patterns.len(), bounds.entries);
            if count > limit {
                return Err(PlanError::ManyEntries { count, limit });
            }
        }
        Ok(())
    }
}

fn check_subpath(below: &Path) -> Result<(), PlanError> {
    let stays = below
        .components()
        .all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    if stays {
        Ok(())
    } else {
        Err(PlanError::Subpath(below.to_owned()))
    }
}

fn start_of(text: &str) -> String {
    text.chars().take(100).collect()
}
