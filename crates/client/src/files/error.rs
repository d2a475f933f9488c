//! Errors of file operations.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use outpost_protocol::{ErrorKind, FileErrorKind, RpcError, code};

use crate::Error;

/// A failed file operation: the operation, the file and the cause.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot {operation} {path:?}: {cause}")]
pub struct FileError {
    operation: &'static str,
    path: PathBuf,
    cause: BackendError,
}

/// The cause of a failed operation, without the name of the file.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct BackendError {
    kind: FileErrorKind,
    message: Arc<str>,
    errno: Option<i32>,
    /// The error of the executor, if that is the cause.
    executor_error: Option<Box<Error>>,
}

impl FileError {
    pub(crate) fn new(operation: &'static str, path: &Path, cause: BackendError) -> Self {
        FileError {
            operation,
            path: path.to_owned(),
            cause,
        }
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> FileErrorKind {
        self.cause.kind
    }

    /// The failed operation: a verb, such as `read`.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The message of the executor. Includes that of the operating system, if there is one.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.cause.message
    }

    /// The errno, if the operating system reported one.
    #[must_use]
    pub fn os_error(&self) -> Option<i32> {
        self.cause.errno
    }

    /// The error of the executor, if the cause is not the file but the executor or its connection.
    #[must_use]
    pub fn executor_error(&self) -> Option<&Error> {
        self.cause.executor_error.as_deref()
    }
}

impl BackendError {
    pub(crate) fn new(kind: FileErrorKind, message: impl Into<Arc<str>>) -> Self {
        BackendError::rejected(kind, None, message)
    }

    /// An error of the executor's file system.
    pub(crate) fn rejected(
        kind: FileErrorKind,
        errno: Option<i32>,
        message: impl Into<Arc<str>>,
    ) -> Self {
        BackendError {
            kind,
            message: message.into(),
            errno,
            executor_error: None,
        }
    }

    /// The error when a file is opened again and its path does not lead to it any more.
    #[cfg(feature = "remote")]
    pub(crate) fn while_reopening(mut self) -> Self {
        use FileErrorKind::{Denied, Invalid, NotFound};
        if matches!(self.kind, NotFound | Denied | Invalid) {
            self.kind = FileErrorKind::Changed;
        }
        self
    }

    /// The consequence for a file when the executor is lost.
    pub(crate) fn lost(kind: FileErrorKind, error: Error) -> Self {
        BackendError {
            kind,
            message: error.to_string().into(),
            errno: None,
            executor_error: Some(Box::new(error)),
        }
    }
}

impl From<RpcError> for BackendError {
    fn from(error: RpcError) -> Self {
        Error::from(error).into()
    }
}

/// An error that is not about the file means that the executor is unreachable or does not support
/// the operation.
impl From<Error> for BackendError {
    fn from(error: Error) -> Self {
        let Error::Rejected {
            code,
            kind,
            errno,
            ref message,
        } = error
        else {
            return BackendError::lost(FileErrorKind::Unavailable, error);
        };
        let mut file_kind = match code {
            code::NOT_FOUND => FileErrorKind::NotFound,
            code::INVALID_REQUEST | code::INVALID_PARAMS => FileErrorKind::Invalid,
            code::INTERNAL_ERROR => FileErrorKind::Failed,
            _ => return BackendError::lost(FileErrorKind::Unavailable, error),
        };
        if kind == ErrorKind::PermissionDenied {
            file_kind = FileErrorKind::Denied;
        }
        BackendError::rejected(file_kind, errno, message.as_str())
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let os_kind = || {
            let errno = error.os_error()?;
            Some(io::Error::from_raw_os_error(errno).kind())
        };
        let kind = match error.kind() {
            FileErrorKind::NotFound => io::ErrorKind::NotFound,
            FileErrorKind::Denied => io::ErrorKind::PermissionDenied,
            FileErrorKind::Invalid => os_kind().unwrap_or(io::ErrorKind::InvalidInput),
            FileErrorKind::Changed => io::ErrorKind::StaleNetworkFileHandle,
            FileErrorKind::Interrupted | FileErrorKind::Unknown => io::ErrorKind::ConnectionAborted,
            FileErrorKind::Unavailable => match error.executor_error() {
                Some(Error::Disconnected { .. }) => io::ErrorKind::ConnectionAborted,
                _ => io::ErrorKind::Unsupported,
            },
            // `Failed`, and kinds to come.
            _ => os_kind().unwrap_or(io::ErrorKind::Other),
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_wire(number: i64, message: &str) -> FileError {
        // As sent by a server that sends no kinds.
        let error = RpcError {
            code: number,
            message: message.to_owned(),
            data: None,
        };
        FileError::new("read", Path::new("/a b"), error.into())
    }

    #[test]
    fn code_and_message_determine_the_kind() {
        for (number, message, kind, os) in [
            (
                code::NOT_FOUND,
                "No such file or directory (os error 2)",
                FileErrorKind::NotFound,
                Some(2),
            ),
            (
                code::INVALID_REQUEST,
                "Permission denied (os error 13)",
                FileErrorKind::Denied,
                Some(13),
            ),
            (
                code::INVALID_REQUEST,
                "path contains a symbolic link",
                FileErrorKind::Invalid,
                None,
            ),
            (
                code::INTERNAL_ERROR,
                "File exists (os error 17)",
                FileErrorKind::Failed,
                Some(17),
            ),
            (
                code::METHOD_NOT_FOUND,
                "exec-server stub does not implement `fs/open` yet",
                FileErrorKind::Unavailable,
                None,
            ),
        ] {
            let error = from_wire(number, message);
            assert_eq!((error.kind(), error.os_error()), (kind, os), "{message}");
            assert_eq!(
                error.executor_error().is_some(),
                kind == FileErrorKind::Unavailable
            );
        }
    }

    #[test]
    fn message_names_operation_and_file() {
        let error = from_wire(code::INTERNAL_ERROR, "File exists (os error 17)");
        assert_eq!(
            error.to_string(),
            "cannot read \"/a b\": File exists (os error 17)"
        );
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::AlreadyExists);
    }
}
