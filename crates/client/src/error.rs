//! Errors of executors and processes.

use std::{io, sync::Arc, time::Duration};

use outpost_protocol::{ErrorData, ErrorKind, RpcError, WriteStatus, code};
use rustix::io::Errno;

/// Why a call, a process or an executor has failed. The message does not repeat the
/// [`source`](std::error::Error::source).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection was lost, or the executor was closed. It is unknown whether the call took
    /// effect.
    #[error("exec-server transport disconnected: {reason}")]
    Disconnected {
        /// Why the connection ended.
        reason: Arc<str>,
    },
    /// The executor rejected the request.
    #[error("{message} ({code})")]
    Rejected {
        /// The JSON-RPC error code.
        code: i64,
        /// The kind of the error.
        kind: ErrorKind,
        /// The error number of the executor's operating system.
        errno: Option<i32>,
        /// The executor's message.
        message: String,
    },
    /// A process could not be started.
    #[error("{message} ({code})")]
    StartFailed {
        /// The JSON-RPC error code.
        code: i64,
        /// The kind of the error, for example [`ErrorKind::ProgramNotFound`].
        kind: ErrorKind,
        /// The error number of the executor's operating system.
        errno: Option<i32>,
        /// The executor's message.
        message: String,
    },
    /// Output was lost before it could be read. The process was terminated unless it is detached
    /// or was only attached to.
    #[error("output of process {id} is lost: events {from} to {to} are no longer retained")]
    Gap {
        /// The process id.
        id: String,
        /// The first missing event.
        from: u64,
        /// The last missing event.
        to: u64,
    },
    /// The server can no longer observe a process that it started.
    #[error("process {id} failed: {message}")]
    ProcessFailed {
        /// The process id.
        id: String,
        /// The server's message.
        message: String,
    },
    /// An operation took longer than its timeout.
    #[error("{attempt} took longer than {within:?}")]
    TimedOut {
        /// The operation.
        attempt: &'static str,
        /// The timeout.
        within: Duration,
    },
    /// The server does not support a capability that the call needs, so no request was made.
    #[error("the server does not support `{capability}`")]
    Unsupported {
        /// The missing member of `capabilities`.
        capability: &'static str,
    },
    /// A relative path was given, and the server does not report its working directory.
    #[error("the server does not report its working directory; use an absolute path")]
    NoDirectory,
    /// The process has no standard input, or it is closed.
    #[error("the input of process {id} is closed")]
    StdinClosed {
        /// The process id.
        id: String,
    },
    /// Processes of a closed session were killed and not seen to end.
    #[error("processes were killed and are not gone yet: {}", .ids.join(", "))]
    StillAlive {
        /// The process ids.
        ids: Vec<String>,
    },
    /// The executor does not know the process.
    #[error("unknown process id {id}")]
    UnknownProcess {
        /// The process id.
        id: String,
    },
    /// No connection could be made.
    #[cfg(feature = "remote")]
    #[error("cannot connect to {address}")]
    Unreachable {
        /// The server's address, without secrets.
        address: String,
        /// Why it failed.
        source: Arc<crate::DialError>,
    },
    /// The server's response can't be decoded.
    #[error("invalid response to {method}: {reason}")]
    InvalidResponse {
        /// The method that was called.
        method: &'static str,
        /// The decoding error.
        reason: Arc<str>,
    },
    /// The body of an HTTP response ended early.
    #[error("the response is incomplete: {message}")]
    BodyFailed {
        /// The executor's message.
        message: String,
    },
    /// Chunks of the body of an HTTP response are missing.
    #[error("the response is incomplete: chunk {seq} received, expected {expected}")]
    BodyGap {
        /// The number of the first missing chunk.
        expected: u64,
        /// The number of the chunk that arrived.
        seq: u64,
    },
    /// The body of an HTTP response is larger than its limit, or than may be buffered.
    #[error("the body is larger than {most} bytes")]
    BodyTooLarge {
        /// The limit.
        most: usize,
    },
    /// The local executor could not be created.
    #[error("cannot create the process spawner: {0}")]
    Setup(Arc<io::Error>),
}

impl Error {
    pub(crate) fn disconnected(reason: impl Into<Arc<str>>) -> Self {
        Error::Disconnected {
            reason: reason.into(),
        }
    }

    /// Checks the status of a write to the standard input of a process.
    pub(crate) fn check_write(status: WriteStatus, id: &str) -> Result<(), Self> {
        let id = || id.to_owned();
        match status {
            WriteStatus::Accepted => Ok(()),
            WriteStatus::StdinClosed => Err(Error::StdinClosed { id: id() }),
            WriteStatus::UnknownProcess | WriteStatus::Starting => {
                Err(Error::UnknownProcess { id: id() })
            }
        }
    }

    /// Turns the rejection of a start request into [`Error::StartFailed`].
    pub(crate) fn of_start(self) -> Self {
        match self {
            Error::Rejected {
                code,
                kind,
                errno,
                message,
            } => Error::StartFailed {
                code,
                kind: start_kind(kind, errno),
                errno,
                message,
            },
            other => other,
        }
    }
}

/// Returns the kind of a failed start. Servers that send no kind report only the OS error,
/// which is then taken to be about the program.
fn start_kind(kind: ErrorKind, errno: Option<i32>) -> ErrorKind {
    match (kind, errno.map(Errno::from_raw_os_error)) {
        (ErrorKind::Io, Some(Errno::NOENT | Errno::NOTDIR)) => ErrorKind::ProgramNotFound,
        (ErrorKind::Io, Some(Errno::ACCESS | Errno::NOEXEC)) => ErrorKind::ProgramNotExecutable,
        (ErrorKind::Io, _) => ErrorKind::SpawnFailed,
        (kind, _) => kind,
    }
}

/// Returns the kind and the error number of an error.
pub(crate) fn error_data(error: &RpcError) -> ErrorData {
    match &error.data {
        // A kind of a newer server: the text may tell more.
        Some(data) if data.kind == ErrorKind::Unknown => ErrorData {
            errno: data.errno,
            ..infer_data(error)
        },
        Some(data) => data.clone(),
        None => infer_data(error),
    }
}

/// Infers kind and error number from code and text.
///
/// Only for servers that send no `error.data`: the released exec-servers, and Outpost before
/// it sent kinds. This is the only place where messages are parsed.
fn infer_data(error: &RpcError) -> ErrorData {
    let errno = error
        .message
        .rsplit_once("(os error ")
        .and_then(|(_, number)| number.strip_suffix(')')?.parse().ok());
    let os = errno.map(Errno::from_raw_os_error);
    let cannot_execute = error.message.starts_with("cannot execute ");
    let kind = match error.code {
        _ if error.message.starts_with("unexpected ") => ErrorKind::UnexpectedMessage,
        _ if cannot_execute && matches!(os, Some(Errno::NOENT | Errno::NOTDIR)) => {
            ErrorKind::ProgramNotFound
        }
        _ if cannot_execute => ErrorKind::ProgramNotExecutable,
        code::METHOD_NOT_FOUND => ErrorKind::MethodNotFound,
        code::INVALID_PARAMS => ErrorKind::InvalidParams,
        code::OVERLOADED => ErrorKind::Overloaded,
        code::NOT_FOUND => ErrorKind::NotFound,
        code::SESSION_ATTACHED => ErrorKind::SessionAttached,
        code::INVALID_REQUEST => match os {
            Some(Errno::PERM | Errno::ACCESS) => ErrorKind::PermissionDenied,
            _ => ErrorKind::InvalidRequest,
        },
        _ => match os {
            Some(os) if error.message == io::Error::from(os).to_string() => ErrorKind::Io,
            _ => ErrorKind::Internal,
        },
    };
    ErrorData {
        kind,
        errno,
        member: None,
        scope: None,
    }
}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        let ErrorData { kind, errno, .. } = error_data(&error);
        Error::Rejected {
            code: error.code,
            kind,
            errno,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn start_failure(code: i64, message: &str, data: Option<ErrorData>) -> ErrorKind {
        let error = RpcError {
            code,
            message: message.to_owned(),
            data,
        };
        match Error::from(error).of_start() {
            Error::StartFailed { kind, .. } => kind,
            other => panic!("unexpected {other:?}"),
        }
    }

    #[test]
    fn sent_kind_wins_over_the_message() {
        let data = ErrorData {
            kind: ErrorKind::WorkingDirectory,
            errno: Some(2),
            member: None,
            scope: None,
        };
        let message = "cannot execute \"x\": No such file or directory (os error 2)";
        let kind = start_failure(code::INTERNAL_ERROR, message, Some(data));
        assert_eq!(kind, ErrorKind::WorkingDirectory);
    }

    #[test]
    fn kinds_are_inferred_for_servers_that_send_none() {
        use ErrorKind::{Internal, Overloaded, ProgramNotExecutable, ProgramNotFound, SpawnFailed};
        for (code, message, kind) in [
            (
                code::INTERNAL_ERROR,
                r#"cannot execute "x": No such file or directory (os error 2)"#,
                ProgramNotFound,
            ),
            (
                code::INTERNAL_ERROR,
                r#"cannot execute "x": Not a directory (os error 20)"#,
                ProgramNotFound,
            ),
            (
                code::INTERNAL_ERROR,
                r#"cannot execute "x": Permission denied (os error 13)"#,
                ProgramNotExecutable,
            ),
            (
                code::INTERNAL_ERROR,
                r#"cannot execute "x": Argument list too long (os error 7)"#,
                ProgramNotExecutable,
            ),
            (
                code::INTERNAL_ERROR,
                "No such file or directory (os error 2)",
                ProgramNotFound,
            ),
            (
                code::INTERNAL_ERROR,
                "Permission denied (os error 13)",
                ProgramNotExecutable,
            ),
            (
                code::INTERNAL_ERROR,
                "Cannot allocate memory (os error 12)",
                SpawnFailed,
            ),
            (
                code::OVERLOADED,
                "Server overloaded; retry later.",
                Overloaded,
            ),
            (
                code::INTERNAL_ERROR,
                r#"cannot enter directory "x": No such file or directory (os error 2)"#,
                Internal,
            ),
            (
                code::INTERNAL_ERROR,
                r#"cannot enter directory "x": Permission denied (os error 13)"#,
                Internal,
            ),
        ] {
            assert_eq!(start_failure(code, message, None), kind, "{message}");
        }
    }
}
