//! The reasons why a process can't be confined as planned.

use std::io;
use std::path::PathBuf;

use super::placeholder::PlaceholderError;
use super::preflight::Unenforceable;
use crate::planning::FailureKind;

/// The maximum number of arguments that bubblewrap accepts, minus a few of our own.
pub(super) const MAX_ARGUMENTS: usize = 9000 - 16;

/// The reason why a process can't be confined as planned.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// This host can't confine processes.
    #[error(transparent)]
    Unenforceable(#[from] Unenforceable),
    /// The plan needs more arguments than bubblewrap accepts.
    #[error(
        "the plan needs {0} arguments for bubblewrap, which accepts {MAX_ARGUMENTS}: deny fewer paths, or whole directories"
    )]
    TooManyArguments(usize),
    /// The plan denies `/proc`, which the helper needs.
    #[error(
        "{0:?} can't be denied: the sandbox needs one of its own there, which shows nothing of the host"
    )]
    ProcDenied(PathBuf),
    /// The plan hides a shared library of the helper.
    #[error("the plan doesn't show {0:?}, which the sandbox's helper needs to start")]
    HelperLibrary(PathBuf),
    /// The plan grants a device read-only, which can't be enforced.
    #[error("{0:?} is a device, which can be granted for writing or not at all")]
    ReadOnlyDevice(PathBuf),
    /// The plan denies a path below a grant, which Landlock alone can't enforce.
    #[error("sandbox.level is \"landlock\", which can't deny {0:?} below a granted path")]
    DeniedBelowGrant(PathBuf),
    /// A path can't be kept absent.
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
    /// A system call failed.
    #[error("cannot pass the plan to the sandbox's helper: {0}")]
    Os(#[from] io::Error),
}

impl PrepareError {
    /// Returns whether the policy or its preparation is at fault.
    #[must_use]
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            PrepareError::Unenforceable(_)
            | PrepareError::TooManyArguments(_)
            | PrepareError::ProcDenied(_)
            | PrepareError::HelperLibrary(_)
            | PrepareError::ReadOnlyDevice(_)
            | PrepareError::DeniedBelowGrant(_) => FailureKind::Intent,
            PrepareError::Placeholder(_) | PrepareError::Os(_) => FailureKind::Preparation,
        }
    }
}
