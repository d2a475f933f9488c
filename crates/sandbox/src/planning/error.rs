//! The reasons why a policy has no plan.

use std::{io, path::PathBuf, time::Duration};

use crate::GrantRecordError;

/// The reason why a policy can't be bound to this host.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A pattern with an access other than deny.
    #[error("the pattern {0:?} can only deny")]
    GrantingPattern(String),
    /// A pattern that exceeds a limit.
    #[error("the pattern {start:?}… is longer than {limit} bytes or has too many alternatives")]
    LongPattern {
        /// The first characters of the pattern.
        start: String,
        /// The maximum length.
        limit: usize,
    },
    /// Too many entries.
    #[error("the policy has {count} entries, and the limit is {limit}")]
    ManyEntries {
        /// Their number.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The scan for patterns visits too many files.
    #[error(
        "the scan for its patterns visits more than {limit} files; \
         use patterns with a longer literal prefix, or set glob_scan_max_depth"
    )]
    ManyFiles {
        /// The limit.
        limit: usize,
    },
    /// The scan for patterns takes too long.
    #[error(
        "the scan for its patterns takes longer than {limit:?}; \
         use patterns with a longer literal prefix, or set glob_scan_max_depth"
    )]
    LongScan {
        /// The limit.
        limit: Duration,
    },
    /// Too many rules.
    #[error("the plan needs more than {limit} rules; deny fewer paths, or whole directories")]
    ManyRules {
        /// The limit.
        limit: usize,
    },
    /// A path leads through a symbolic link that the sandboxed process could replace.
    #[error(
        "{} is a symbolic link in a writable directory, so {} can't be enforced",
        link.display(), path.display()
    )]
    LinkInWritable {
        /// The link.
        link: PathBuf,
        /// The path of the entry.
        path: PathBuf,
    },
    /// A path leads through a symbolic link that an earlier sandboxed process could have created.
    #[error(
        "{} is a symbolic link where an earlier sandboxed process could write, so {} can't be enforced; \
         name the link's target instead",
        link.display(), path.display()
    )]
    LinkInGranted {
        /// The link.
        link: PathBuf,
        /// The path of the entry.
        path: PathBuf,
    },
    /// A path leads through another user's symbolic link in a directory where everybody can write.
    #[error(
        "{} is another user's symbolic link in a shared directory, so {} can't be enforced",
        link.display(), path.display()
    )]
    OtherUsersLink {
        /// The link.
        link: PathBuf,
        /// The path of the entry.
        path: PathBuf,
    },
    /// A granted directory that the server's user can't enter, with a denied path in it.
    #[error(
        "the server's user can't enter {}, so the entries for paths in it can't be enforced",
        .0.display()
    )]
    Closed(PathBuf),
    /// A directory that may contain matches and granted paths, and whose path is too long for the kernel
    /// to name what is in it.
    #[error(
        "the path of a directory is too long to scan it for patterns: {}",
        .0.display()
    )]
    LongPath(PathBuf),
    /// An empty pattern.
    #[error("a pattern is empty")]
    EmptyPattern,
    /// A subpath that isn't below the project roots.
    #[error("the subpath {} leads out of the project roots", .0.display())]
    Subpath(PathBuf),
    /// Too many symbolic links.
    #[error("too many symbolic links on the way to {}", .0.display())]
    Links(PathBuf),
    /// A writable path that doesn't exist.
    #[error("{} is to be written and does not exist", .0.display())]
    NothingToWrite(PathBuf),
    /// A path that can't be inspected.
    #[error("cannot inspect {}: {error}", path.display())]
    Inspect {
        /// The path.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The record of granted directories can't be read.
    #[error(transparent)]
    GrantRecord(#[from] GrantRecordError),
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The policy can't be enforced on this host.
    Intent,
    /// The policy could be enforced, but its preparation failed.
    Preparation,
}

impl PlanError {
    /// Returns whether the policy or its preparation is at fault.
    #[must_use]
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            PlanError::GrantingPattern(_)
            | PlanError::LongPattern { .. }
            | PlanError::ManyEntries { .. }
            | PlanError::ManyFiles { .. }
            | PlanError::LongScan { .. }
            | PlanError::ManyRules { .. }
            | PlanError::LinkInWritable { .. }
            | PlanError::LinkInGranted { .. }
            | PlanError::OtherUsersLink { .. }
            | PlanError::Closed(_)
            | PlanError::LongPath(_)
            | PlanError::EmptyPattern
            | PlanError::Subpath(_) => FailureKind::Intent,
            PlanError::Links(_)
            | PlanError::NothingToWrite(_)
            | PlanError::Inspect { .. }
            | PlanError::GrantRecord(_) => FailureKind::Preparation,
        }
    }
}
