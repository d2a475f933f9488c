//! One line of a policy.

use std::path::PathBuf;

use crate::Access;

/// A place, and what may be done there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where.
    pub place: Place,
    /// What.
    pub access: Access,
    /// What it means that nothing is there.
    pub missing: Missing,
}

impl Entry {
    /// An entry whose absence is an error where it matters.
    #[must_use]
    pub fn new(place: Place, access: Access) -> Self {
        Entry {
            place,
            access,
            missing: Missing::Matters,
        }
    }

    /// The same, and its absence is fine.
    #[must_use]
    pub fn skipping_missing(mut self) -> Self {
        self.missing = Missing::Skip;
        self
    }
}

/// Where an entry applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An absolute path.
    Path(PathBuf),
    /// Something that each host has somewhere else.
    Special(Special),
    /// Whatever matches. Such entries can only deny.
    Pattern(String),
}

/// A place that goes by its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Special {
    /// Everything.
    Root,
    /// What a dynamic program needs to run.
    Minimal,
    /// Each of the workspace roots, or something below each of them.
    ProjectRoots {
        /// Relative; empty for the roots themselves.
        below: PathBuf,
    },
    /// `$TMPDIR` of the child.
    Tmpdir,
    /// `/tmp`.
    SlashTmp,
    /// A word that the sender knows and we don't.
    Unknown(String),
}

/// What the absence of an entry's path means.
///
/// This is about granting alone: what is only to be read, or not at all, can't be created whichever
/// it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// What can't be granted is an error.
    Matters,
    /// Then there is nothing to grant.
    Skip,
}
