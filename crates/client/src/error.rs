//! What can go wrong, in a form that a caller can react to.

use std::{io, sync::Arc, time::Duration};

use outpost_protocol::RpcError;

/// Why a call, a process or a whole place has failed. Where there is a source it
/// says more, and the text does not repeat it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server can't be reached any more, or could not be when this call
    /// was under way. Nobody knows whether such a call took effect.
    #[error("exec-server transport disconnected: {reason}")]
    Disconnected {
        /// What became of the connection.
        reason: Arc<str>,
    },
    /// The place understood and said no.
    #[error("{message} ({code})")]
    Refused {
        /// The code of the wire.
        code: i64,
        /// The words of the place.
        message: String,
    },
    /// A process could not be started.
    #[error("{message} ({code})")]
    StartFailed {
        /// The code of the wire.
        code: i64,
        /// The words of the place; for a program that can't be executed, with
        /// those of its operating system.
        message: String,
    },
    /// Output is gone before anybody had it. The process was terminated, unless
    /// it was detached or has only been attached to.
    #[error("output of process {id} is lost: events {from} to {to} are no longer retained")]
    Gap {
        /// Which process.
        id: String,
        /// The first event that is missing.
        from: u64,
        /// The last one.
        to: u64,
    },
    /// The server has lost sight of a process that it had started.
    #[error("process {id} failed: {message}")]
    ProcessFailed {
        /// Which process.
        id: String,
        /// What the server says.
        message: String,
    },
    /// Something that has a deadline has passed it.
    #[error("{attempt} took longer than {within:?}")]
    TimedOut {
        /// What was tried.
        attempt: &'static str,
        /// How long it had.
        within: Duration,
    },
    /// The server doesn't say that it can do this, so it was not asked.
    #[error("the server does not announce `{capability}`")]
    NotAnnounced {
        /// The member of `capabilities` that isn't true.
        capability: &'static str,
    },
    /// The server doesn't say where it is, and something was to be done there.
    #[error("the server does not say where it is, so the directory has to be given in full")]
    NoDirectory,
    /// The process takes no input, or no more.
    #[error("the input of process {id} is closed")]
    StdinClosed {
        /// Which process.
        id: String,
    },
    /// The place doesn't know the process any more.
    #[error("unknown process id {id}")]
    UnknownProcess {
        /// Which process.
        id: String,
    },
    /// No connection could be made.
    #[error("cannot connect to {address}")]
    Unreachable {
        /// Where it was tried.
        address: String,
        /// Why it failed.
        source: Arc<crate::DialError>,
    },
    /// The server's answer can't be understood.
    #[error("the answer to {method} makes no sense: {reason}")]
    Nonsense {
        /// What was asked.
        method: &'static str,
        /// What is wrong with the answer.
        reason: Arc<serde_json::Error>,
    },
    /// The body of an HTTP response ended before it was whole.
    #[error("the response is incomplete: {message}")]
    BodyFailed {
        /// The words of the place.
        message: String,
    },
    /// Pieces of the body of an HTTP response are missing.
    #[error("the response is incomplete: piece {seq} came where {expected} was expected")]
    BodyGap {
        /// The number of the first piece that is missing.
        expected: u64,
        /// The number of the one that came.
        seq: u64,
    },
    /// The body of an HTTP response has more bytes than it may have, or than may
    /// wait here, where a server waits for nobody.
    #[error("the body is larger than {most} bytes")]
    BodyTooLarge {
        /// How many there may be.
        most: usize,
    },
    /// This program can't start processes.
    #[error("cannot prepare to start processes: {0}")]
    Unprepared(Arc<io::Error>),
}

impl Error {
    pub(crate) fn disconnected(reason: impl Into<Arc<str>>) -> Self {
        Error::Disconnected {
            reason: reason.into(),
        }
    }

    /// The same refusal, said of a start.
    pub(crate) fn of_start(self) -> Self {
        match self {
            Error::Refused { code, message } => Error::StartFailed { code, message },
            other => other,
        }
    }
}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        Error::Refused {
            code: error.code,
            message: error.message,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::StdinClosed { .. } => io::ErrorKind::BrokenPipe,
            Error::Disconnected { .. } => io::ErrorKind::ConnectionAborted,
            Error::TimedOut { .. } => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
