//! Why there is no plan.

use std::{io, path::PathBuf, time::Duration};

/// What keeps a policy from being bound to this host. Nothing is started then.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A pattern that grants something.
    #[error("the pattern {0:?} can only deny")]
    GrantingPattern(String),
    /// A pattern of a length that nobody writes.
    #[error("the pattern {start:?}… is longer than {limit} bytes or has too many alternatives")]
    LongPattern {
        /// How it begins.
        start: String,
        /// How long it may be.
        limit: usize,
    },
    /// More entries than anybody needs.
    #[error("it has {count} entries and {limit} is the limit")]
    ManyEntries {
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Patterns whose scan doesn't end within reason.
    #[error(
        "more than {limit} files would have to be looked at for its patterns; \
         let them start further down, or set glob_scan_max_depth"
    )]
    ManyFiles {
        /// How many may be looked at.
        limit: usize,
    },
    /// Patterns whose scan doesn't end in time.
    #[error(
        "looking for its patterns takes longer than {within:?}; \
         let them start further down, or set glob_scan_max_depth"
    )]
    LongScan {
        /// How long it may take.
        within: Duration,
    },
    /// More rules than a namespace can be made of.
    #[error("more than {limit} paths would have to be treated differently")]
    ManyRules {
        /// How many there may be.
        limit: usize,
    },
    /// A path that leads through a link which the confined process could replace.
    #[error(
        "{} is a symbolic link in a directory that may be written, so {} can't be kept as it is",
        link.display(), path.display()
    )]
    LinkInWritable {
        /// The link.
        link: PathBuf,
        /// What was asked for.
        path: PathBuf,
    },
    /// A directory that is granted and closed, and something in it is not granted.
    #[error(
        "{} is closed to the user of this server, so what is asked for in it can't be kept",
        .0.display()
    )]
    Closed(PathBuf),
    /// A pattern of nothing.
    #[error("an empty pattern names nothing")]
    EmptyPattern,
    /// What is below a project root has to be below it.
    #[error("the subpath {} leads out of the project roots", .0.display())]
    Subpath(PathBuf),
    /// Links that lead in a circle, or nearly.
    #[error("too many symbolic links on the way to {}", .0.display())]
    Links(PathBuf),
    /// A path that is to be written and doesn't exist.
    #[error("{} is to be written and does not exist", .0.display())]
    NothingToWrite(PathBuf),
    /// A path that can't be looked at.
    #[error("cannot look at {}: {why}", path.display())]
    Look {
        /// The path.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
}

/// On whose side it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// What is wanted can't be kept here, whatever is done.
    Intent,
    /// It could be, and something was in the way.
    Preparation,
}

impl PlanError {
    /// On whose side it fails.
    #[must_use]
    pub fn failing(&self) -> Failing {
        match self {
            PlanError::GrantingPattern(_)
            | PlanError::LongPattern { .. }
            | PlanError::ManyEntries { .. }
            | PlanError::ManyFiles { .. }
            | PlanError::LongScan { .. }
            | PlanError::ManyRules { .. }
            | PlanError::LinkInWritable { .. }
            | PlanError::Closed(_)
            | PlanError::EmptyPattern
            | PlanError::Subpath(_) => Failing::Intent,
            PlanError::Links(_) | PlanError::NothingToWrite(_) | PlanError::Look { .. } => {
                Failing::Preparation
            }
        }
    }
}
