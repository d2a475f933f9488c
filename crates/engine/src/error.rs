//! What can go wrong, one closed enum per operation.

use outpost_process::SpawnError;
use outpost_sandbox::Refusal;

/// Why a process did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The id is in use in this session.
    #[error("process {0} already exists")]
    Exists(String),
    /// A terminate came before the child existed.
    #[error("process {0} start was cancelled")]
    Cancelled(String),
    /// The session ended meanwhile.
    #[error("the session has ended")]
    SessionEnded,
    /// As many processes run as the server allows.
    #[error("too many processes")]
    TooMany,
    /// The operating system said no.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It can't be confined as it should.
    #[error(transparent)]
    Sandbox(#[from] Refusal),
}

/// Why a process can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No such process in this session.
    #[error("unknown process id {0}")]
    Unknown(String),
    /// Its start has not been answered yet.
    #[error("process id {0} is starting")]
    Starting(String),
}

/// Why a process has no new size.
#[derive(Debug, thiserror::Error)]
pub enum ResizeError {
    /// No such process in this session.
    #[error("unknown process id {0}")]
    Unknown(String),
    /// It runs on pipes.
    #[error("process {0} is not attached to a PTY")]
    NotATerminal(String),
    /// The operating system said no.
    #[error("failed to resize the PTY of process {id}: {source}")]
    Os {
        /// The process.
        id: String,
        /// The reason.
        source: std::io::Error,
    },
}
