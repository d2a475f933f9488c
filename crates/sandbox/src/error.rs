//! The reasons why a sandboxed process did not start.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::floor::Excess;
use crate::linux::{GrantRecordError, PlaceholderError, Step, Unenforceable};
use crate::planning::{FailureKind, PlanError};

/// The maximum number of arguments that bubblewrap accepts, minus a few of our own.
pub(crate) const MAX_ARGUMENTS: usize = 9000 - 16;

/// The maximum number of ports that the helper listens on for the server. Their descriptors come in one
/// message.
pub(crate) const MAX_LISTENERS: usize = 32;

/// The reason why a sandboxed process did not start. Clients compare the beginnings of the messages.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The policy can't be bound to this host.
    #[error("{}: {error}", prefix(.0.failure_kind()), error = .0)]
    Plan(#[from] PlanError),
    /// The plan can't be enforced on this host, or not at the moment.
    #[error("{}: {error}", prefix(.0.failure_kind()), error = .0)]
    Prepare(#[from] PrepareError),
    /// A step between the server and the program failed.
    #[error(
        "{PREPARATION}: cannot {step}{}: {}{}",
        in_parentheses(stderr),
        io::Error::from_raw_os_error(*errno),
        remedy(*step, *errno)
    )]
    Helper {
        /// The step that failed.
        step: Step,
        /// The errno it failed with.
        errno: i32,
        /// The first line that bubblewrap or the helper wrote, if any.
        stderr: String,
    },
    /// The helper exited without a report.
    #[error("{PREPARATION}: {stderr}")]
    HelperExited {
        /// The first line that it wrote.
        stderr: String,
    },
    /// Preparation or the helper's setup took too long.
    #[error("{PREPARATION}: it took longer than {limit:?}")]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// Too many earlier preparations hang.
    #[error(
        "{PREPARATION}: more than {count} earlier ones wait for file systems that do not answer; \
         repair or unmount these"
    )]
    Hanging {
        /// The limit.
        count: usize,
    },
    /// The policy grants more than the floor of the request.
    #[error("not permitted: the sandbox asks for {0}, which that of the principal does not grant")]
    ExceedsFloor(Excess),
    /// The thread that planned the process panicked.
    #[error("{PREPARATION}: planning failed unexpectedly")]
    PlanningPanicked,
}

impl SandboxError {
    /// Returns whether a path appeared or disappeared during the start, so that a retry may succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            SandboxError::Plan(PlanError::Inspect { error, .. }) => {
                error.kind() == io::ErrorKind::NotFound
            }
            SandboxError::Prepare(PrepareError::Placeholder(error)) => error.is_transient(),
            SandboxError::Helper { step, errno, .. } => is_changed_path(*step, *errno),
            _ => false,
        }
    }

    pub(crate) fn helper_exited(stderr: String) -> Self {
        let stderr = or_no_message(stderr);
        SandboxError::HelperExited { stderr }
    }
}

/// Replaces an empty output of a helper that ended without a report.
pub(crate) fn or_no_message(stderr: String) -> String {
    if stderr.is_empty() {
        "the sandbox's helper exited without a message".to_owned()
    } else {
        stderr
    }
}

fn is_changed_path(step: Step, errno: i32) -> bool {
    matches!(step, Step::Mounts | Step::MountCheck)
        && [libc::ENOENT, libc::ESTALE, libc::ENOTDIR].contains(&errno)
}

fn remedy(step: Step, errno: i32) -> &'static str {
    if is_changed_path(step, errno) {
        "; the path changed after planning, retry"
    } else {
        ""
    }
}

pub(crate) fn in_parentheses(stderr: &str) -> String {
    if stderr.is_empty() {
        String::new()
    } else {
        format!(" ({stderr})")
    }
}

const PREPARATION: &str = "failed to prepare process sandbox";

fn prefix(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Intent => "sandbox intent cannot be enforced on this executor",
        FailureKind::Preparation => PREPARATION,
    }
}

/// The reason why a process can't be sandboxed as planned.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// This host can't sandbox processes.
    #[error(transparent)]
    Unenforceable(#[from] Unenforceable),
    /// The plan needs more arguments than bubblewrap accepts.
    #[error(
        "the plan needs {0} arguments for bubblewrap, which accepts {MAX_ARGUMENTS}: deny fewer paths, or whole directories"
    )]
    TooManyArguments(usize),
    /// The plan denies `/proc`, which the helper needs.
    #[error("{0:?} can't be denied: the sandbox mounts its own there")]
    ProcDenied(PathBuf),
    /// The plan grants a device read-only, which can't be enforced.
    #[error("{0:?} is a device, which can be granted for writing or not at all")]
    ReadOnlyDevice(PathBuf),
    /// The plan denies a path below a grant, which Landlock alone can't enforce.
    #[error("sandbox.level is \"landlock\", which can't deny {0:?} below a granted path")]
    DeniedBelowGrant(PathBuf),
    /// The process may reach a proxy only, which Landlock alone can't enforce.
    #[error("sandbox.level is \"landlock\", which can't restrict the network to a proxy")]
    ManagedNetwork,
    /// The process is to reach more ports than the helper can listen on.
    #[error("{0} loopback ports are too many: at most {MAX_LISTENERS} can be reached")]
    TooManyPorts(usize),
    /// A path can't be kept absent.
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
    /// The directories that the plan makes writable can't be recorded.
    #[error(transparent)]
    GrantRecord(#[from] GrantRecordError),
    /// A system call failed.
    #[error("cannot pass the plan to the sandbox's helper: {0}")]
    Os(#[from] io::Error),
}

impl PrepareError {
    fn failure_kind(&self) -> FailureKind {
        match self {
            PrepareError::Unenforceable(_)
            | PrepareError::TooManyArguments(_)
            | PrepareError::ProcDenied(_)
            | PrepareError::ReadOnlyDevice(_)
            | PrepareError::DeniedBelowGrant(_)
            | PrepareError::ManagedNetwork
            | PrepareError::TooManyPorts(_) => FailureKind::Intent,
            PrepareError::Placeholder(_) | PrepareError::GrantRecord(_) | PrepareError::Os(_) => {
                FailureKind::Preparation
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helper(step: Step, errno: i32) -> SandboxError {
        SandboxError::Helper {
            step,
            errno,
            stderr: "/srv/x".to_owned(),
        }
    }

    #[test]
    fn changed_paths_are_transient() {
        assert!(helper(Step::Mounts, libc::ENOENT).is_transient());
        assert!(helper(Step::MountCheck, libc::ESTALE).is_transient());
        assert!(!helper(Step::Mounts, libc::EACCES).is_transient());
        assert!(!helper(Step::Execute, libc::ENOENT).is_transient());
        let appeared = PlaceholderError::Appeared("/ws/.git".into());
        assert!(SandboxError::from(PrepareError::from(appeared)).is_transient());
        let missing = SandboxError::from(PlanError::NothingToWrite("/ws".into()));
        assert!(!missing.is_transient());
    }

    #[test]
    fn messages_begin_with_the_kind_of_failure() {
        let messages = [
            SandboxError::from(PrepareError::from(Unenforceable::NoBubblewrap)),
            PlanError::GrantingPattern("**".into()).into(),
            PlanError::NothingToWrite("/x".into()).into(),
            helper(Step::MountCheck, libc::ESTALE),
            helper(Step::Mounts, libc::EACCES),
        ]
        .map(|error| error.to_string());
        assert_eq!(
            messages,
            [
                "sandbox intent cannot be enforced on this executor: bwrap isn't found on the server's PATH: install the package bubblewrap",
                "sandbox intent cannot be enforced on this executor: the pattern \"**\" can only deny",
                "failed to prepare process sandbox: /x is to be written and does not exist",
                "failed to prepare process sandbox: cannot verify mounts (/srv/x): Stale file handle (os error 116); the path changed after planning, retry",
                "failed to prepare process sandbox: cannot mount the sandbox's files (/srv/x): Permission denied (os error 13)",
            ]
        );
    }
}
