//! Errors of starting a program.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::time::Duration;

use crate::sys::child_setup::Stage;

/// A failed start. It leaves no descriptor, process or cgroup behind.
#[derive(Debug, thiserror::Error)]
#[error("cannot {kind} {subject:?}: {cause}")]
pub struct SpawnError {
    kind: SpawnErrorKind,
    /// The object of the step: the program, the directory, the argument.
    subject: OsString,
    /// Not a `source`: the message contains it already, and an error chain would repeat it.
    cause: Cause,
}

/// The step that failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnErrorKind {
    /// The program does not exist.
    NotFound,
    /// The program exists but cannot be executed.
    NotExecutable,
    /// The working directory cannot be entered.
    Directory,
    /// The arguments are invalid: none at all, or one with a NUL byte.
    Arguments,
    /// A variable is invalid: a NUL byte, or a name that is empty or contains `=`.
    Environment,
    /// The pipes could not be opened or registered; usually too many descriptors are open.
    Descriptors,
    /// No terminal could be opened or made the controlling terminal.
    Terminal,
    /// The process tree could not be created.
    Tree,
    /// A resource limit could not be set for the child.
    Limits,
    /// The process could not be cloned.
    Clone,
    /// The file system of the program or of the working directory does not answer, and it is unknown
    /// which. Otherwise the kind is [`SpawnErrorKind::NotExecutable`] or [`SpawnErrorKind::Directory`].
    Unresponsive,
    /// The spawner is shutting down.
    Stopped,
}

/// The cause of a failure.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cause {
    #[error("{}", io::Error::from_raw_os_error(*.0))]
    Os(i32),
    #[error("it contains a NUL byte")]
    Nul,
    #[error("there is no program")]
    NoProgram,
    #[error("its name is empty or contains an equals sign")]
    Name,
    #[error("the spawner has stopped")]
    Stopped,
    #[error("its subreaper was killed")]
    ReaperDied,
    #[error("the file system did not answer within {0:?}")]
    Unresponsive(Duration),
    #[error("too many starts wait for file systems that do not answer")]
    AllHung,
}

impl SpawnError {
    pub(crate) fn new(kind: SpawnErrorKind, subject: impl AsRef<OsStr>, cause: Cause) -> Self {
        Self {
            kind,
            subject: subject.as_ref().to_owned(),
            cause,
        }
    }

    /// The error for a program that a wrapper could not execute.
    pub fn not_executed(program: impl AsRef<OsStr>, errno: i32) -> Self {
        let kind = match errno {
            libc::ENOENT | libc::ENOTDIR => SpawnErrorKind::NotFound,
            _ => SpawnErrorKind::NotExecutable,
        };
        Self::new(kind, program, Cause::Os(errno))
    }

    /// The error for a working directory that a wrapper could not enter.
    pub fn not_entered(directory: impl AsRef<OsStr>, errno: i32) -> Self {
        Self::new(SpawnErrorKind::Directory, directory, Cause::Os(errno))
    }

    /// The error for a start that was given up after `limit`, in this step if it is known.
    pub(crate) fn unresponsive(
        stage: Option<Stage>,
        program: &OsStr,
        directory: &OsStr,
        limit: Duration,
    ) -> Self {
        let cause = Cause::Unresponsive(limit);
        match stage {
            Some(Stage::Directory) => Self::new(SpawnErrorKind::Directory, directory, cause),
            Some(Stage::Execute) => Self::new(SpawnErrorKind::NotExecutable, program, cause),
            _ => {
                let mut both = program.to_owned();
                both.push(" in ");
                both.push(directory);
                Self::new(SpawnErrorKind::Unresponsive, both, cause)
            }
        }
    }

    /// The step that failed.
    pub fn kind(&self) -> SpawnErrorKind {
        self.kind
    }

    /// Whether the child's cgroup was removed before the child was cloned into it.
    pub(crate) fn is_tree_removed(&self) -> bool {
        self.kind == SpawnErrorKind::Clone
            && matches!(self.cause, Cause::Os(libc::ENODEV | libc::ENOENT))
    }

    /// The `errno`, if the cause has one.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self.cause {
            Cause::Os(errno) => Some(errno),
            Cause::Unresponsive(_) => Some(libc::ETIMEDOUT),
            _ => None,
        }
    }
}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        Cause::Os(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Display for SpawnErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SpawnErrorKind::NotFound | SpawnErrorKind::NotExecutable => "execute",
            SpawnErrorKind::Directory => "enter directory",
            SpawnErrorKind::Arguments => "pass argument",
            SpawnErrorKind::Environment => "pass variable",
            SpawnErrorKind::Descriptors => "open descriptors for",
            SpawnErrorKind::Terminal => "open a terminal for",
            SpawnErrorKind::Tree => "create a process tree for",
            SpawnErrorKind::Limits => "set the limits of",
            SpawnErrorKind::Clone => "create a process for",
            SpawnErrorKind::Unresponsive | SpawnErrorKind::Stopped => "start",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_operation_object_and_cause() {
        let error = SpawnError::new(SpawnErrorKind::NotFound, "nosuch", Cause::Os(libc::ENOENT));
        assert_eq!(
            error.to_string(),
            r#"cannot execute "nosuch": No such file or directory (os error 2)"#
        );
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let error = SpawnError::new(SpawnErrorKind::Arguments, "a\0b", Cause::Nul);
        assert_eq!(
            error.to_string(),
            r#"cannot pass argument "a\0b": it contains a NUL byte"#
        );
        assert_eq!(error.raw_os_error(), None);
    }
}
