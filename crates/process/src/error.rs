//! Why a program could not be started.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;

/// One start that failed. Nothing of it is left: no descriptor, no process, no directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {kind} {subject:?}: {cause}")]
pub struct SpawnError {
    kind: SpawnErrorKind,
    /// What the step was tried on: the program, the directory, the argument.
    subject: OsString,
    /// Not a `source`: the message names it already, and a chain would say it twice.
    cause: Cause,
}

/// The step that failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnErrorKind {
    /// There is no such program.
    NotFound,
    /// The program is there and can't be executed.
    NotExecutable,
    /// The working directory can't be entered.
    Directory,
    /// The arguments can't be passed: none at all, or one with a NUL byte.
    Arguments,
    /// A variable can't be passed: a NUL byte, or a name that is empty or contains `=`.
    Environment,
    /// The pipes or their registration failed; most often too many are open.
    Descriptors,
    /// No terminal could be opened or made the controlling one.
    Terminal,
    /// The place for the process's tree could not be made.
    Tree,
    /// A resource limit could not be given to the child.
    Limits,
    /// The process itself could not be made.
    Clone,
    /// The spawner is shutting down.
    Stopped,
}

/// What was wrong, in the words of the system or in ours.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The system refused.
    Os(i32),
    /// A C string would end here.
    Nul,
    /// `argv` has no program.
    NoProgram,
    /// The name of a variable is empty or contains `=`.
    Name,
    /// No thread is left to do it.
    Stopped,
    /// Somebody has killed the keeper.
    KeeperGone,
}

impl SpawnError {
    pub(crate) fn new(kind: SpawnErrorKind, subject: impl AsRef<OsStr>, cause: Cause) -> Self {
        let subject = subject.as_ref().to_owned();
        Self {
            kind,
            subject,
            cause,
        }
    }

    /// What to say of a program that a program of ours could not become, for the system's reason.
    pub fn not_executed(program: impl AsRef<OsStr>, errno: i32) -> Self {
        let kind = SpawnErrorKind::of_execution(errno);
        Self::new(kind, program, Cause::Os(errno))
    }

    /// What to say of a directory that a program of ours could not enter, for the system's reason.
    pub fn not_entered(directory: impl AsRef<OsStr>, errno: i32) -> Self {
        Self::new(SpawnErrorKind::Directory, directory, Cause::Os(errno))
    }

    /// The step that failed.
    pub fn kind(&self) -> SpawnErrorKind {
        self.kind
    }

    /// What the system said, where it was asked.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self.cause {
            Cause::Os(errno) => Some(errno),
            _ => None,
        }
    }
}

impl SpawnErrorKind {
    pub(crate) fn of_execution(errno: i32) -> Self {
        match errno {
            libc::ENOENT | libc::ENOTDIR => SpawnErrorKind::NotFound,
            _ => SpawnErrorKind::NotExecutable,
        }
    }
}

impl From<rustix::io::Errno> for Cause {
    fn from(errno: rustix::io::Errno) -> Self {
        Cause::Os(errno.raw_os_error())
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
            SpawnErrorKind::Tree => "keep the tree of",
            SpawnErrorKind::Limits => "set the limits of",
            SpawnErrorKind::Clone => "create a process for",
            SpawnErrorKind::Stopped => "start",
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Os(errno) => io::Error::from_raw_os_error(*errno).fmt(f),
            Cause::Nul => f.write_str("it contains a NUL byte"),
            Cause::NoProgram => f.write_str("there is no program"),
            Cause::Name => f.write_str("its name is empty or contains an equals sign"),
            Cause::Stopped => f.write_str("the spawner has stopped"),
            Cause::KeeperGone => f.write_str("its keeper was killed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_tried_on_what_and_the_words_of_the_system() {
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
