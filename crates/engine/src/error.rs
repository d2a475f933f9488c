//! Errors, one closed enum per operation.

use std::path::PathBuf;

use outpost_process::{SpawnError, SpawnErrorKind};
use outpost_sandbox::{LaunchError, SandboxError};
use outpost_types::{ErrorKind, LimitError, LimitName};

/// Errors of starting a process.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The id is in use in this session.
    #[error("process {0} already exists")]
    Exists(String),
    /// A terminate request arrived before the child existed.
    #[error("process {0} start was cancelled")]
    Cancelled(String),
    /// The session ended in the meantime.
    #[error("the session has ended")]
    SessionEnded,
    /// The maximum number of processes is running.
    #[error("too many processes")]
    TooMany,
    /// The maximum number of processes of the principal is running.
    #[error(
        "limit of the principal: {0} processes at once (limits.processes); wait for one, or end one, such as with \
         outpost kill"
    )]
    ProcessLimit(usize),
    /// The maximum number of sessions of the principal has processes.
    #[error(
        "limit of the principal: {0} sessions with processes at once (limits.sessions); end one, such as with \
         outpost kill; outpost ps lists them"
    )]
    SessionLimit(usize),
    /// The operating system rejected the start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The sandbox cannot be enforced.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The proxy of the process could not be started.
    #[error("failed to start executor network proxy: {0}")]
    NetworkProxy(std::io::Error),
    /// A limit is invalid or cannot be enforced.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The principal of the client may not do this.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// The start could not be recorded.
    #[error(transparent)]
    NotRecorded(#[from] NotRecorded),
}

/// A request that is not permitted to the principal of a client.
#[derive(Debug, thiserror::Error)]
pub enum NotPermitted {
    /// A directory or file outside of its roots.
    #[error("not permitted: {} is not below one of the roots of the principal", .0.display())]
    OutsideRoots(PathBuf),
    /// To start a process without a sandbox, or use files without one.
    #[error("not permitted: the principal may do this only in a sandbox")]
    Unsandboxed,
    /// An operation that cannot be sandboxed.
    #[error("not permitted: {0} cannot be sandboxed to the sandbox of the principal")]
    Unconfinable(&'static str),
    /// A limit beyond its own.
    #[error("not permitted: limits.{} may be {max} at most", .name.as_str())]
    Limit {
        /// The limit.
        name: LimitName,
        /// The maximum of the limit.
        max: String,
    },
}

/// New work that was refused because it cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the audit log cannot be written, and the server refuses new work until it can; the cause is in the \
     server's log"
)]
pub struct NotRecorded;

impl From<LaunchError> for StartError {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Spawn(error) => StartError::Spawn(error),
            LaunchError::Sandbox(error) => StartError::Sandbox(error),
        }
    }
}

impl StartError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            StartError::Exists(_) => ErrorKind::DuplicateProcess,
            StartError::Cancelled(_) => ErrorKind::StartCancelled,
            StartError::SessionEnded => ErrorKind::SessionEnded,
            StartError::TooMany | StartError::ProcessLimit(_) | StartError::SessionLimit(_) => {
                ErrorKind::Overloaded
            }
            StartError::Sandbox(SandboxError::ExceedsFloor(_)) | StartError::NotPermitted(_) => {
                ErrorKind::Forbidden
            }
            StartError::Sandbox(_) => ErrorKind::Sandbox,
            StartError::NetworkProxy(_) | StartError::NotRecorded(_) => ErrorKind::Internal,
            StartError::Limit(_) => ErrorKind::InvalidParams,
            StartError::Spawn(error) => match error.kind() {
                SpawnErrorKind::NotFound => ErrorKind::ProgramNotFound,
                SpawnErrorKind::NotExecutable => ErrorKind::ProgramNotExecutable,
                SpawnErrorKind::Directory => ErrorKind::WorkingDirectory,
                // Without an OS error the request itself is invalid.
                SpawnErrorKind::Arguments | SpawnErrorKind::Environment
                    if error.raw_os_error().is_none() =>
                {
                    ErrorKind::InvalidParams
                }
                _ => ErrorKind::SpawnFailed,
            },
        }
    }

    /// Returns the error number of the failed system call.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            StartError::Spawn(error) => error.raw_os_error(),
            StartError::NetworkProxy(error) => error.raw_os_error(),
            _ => None,
        }
    }
}

/// Why a process can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No such process in this session.
    #[error("unknown process id {0}")]
    Unknown(String),
    /// The start of the process has not completed yet.
    #[error("process id {0} is starting")]
    Starting(String),
}

/// Errors of resizing a terminal.
#[derive(Debug, thiserror::Error)]
pub enum ResizeError {
    /// No such process in this session.
    #[error("unknown process id {0}")]
    Unknown(String),
    /// The process runs on pipes.
    #[error("process {0} is not attached to a PTY")]
    NotATerminal(String),
    /// The operating system rejected the resize.
    #[error("failed to resize the PTY of process {id}: {source}")]
    Os {
        /// The process id.
        id: String,
        /// The cause.
        source: std::io::Error,
    },
}

impl ResizeError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            ResizeError::Unknown(_) => ErrorKind::UnknownProcess,
            ResizeError::NotATerminal(_) => ErrorKind::NotATerminal,
            ResizeError::Os { .. } => ErrorKind::Internal,
        }
    }

    /// Returns the error number of the failed system call.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            ResizeError::Os { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}
