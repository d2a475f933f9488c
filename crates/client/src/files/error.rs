//! What can go wrong with a file.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use outpost_protocol::{RpcError, code};

use crate::Error;

/// What every error of an operating system ends with.
const OS_ERROR: &str = "(os error ";

/// Why an operation on a file has failed: what was tried, on which file, and what
/// its place says.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot {attempt} {path:?}: {trouble}")]
pub struct FileError {
    attempt: &'static str,
    path: PathBuf,
    trouble: Trouble,
}

/// What callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// There is no such thing.
    NotFound,
    /// The place may not do that to it.
    Denied,
    /// It makes no sense to do that to it.
    Invalid,
    /// It was tried, and went wrong.
    Failed,
    /// The connection was lost while a file was read, and the file is not what it
    /// was: going on would give a mixture.
    Changed,
    /// The connection was lost while a file was written. The old one is as it was.
    Interrupted,
    /// The connection was lost while a file was about to be replaced, and nobody
    /// knows whether it was.
    Unknown,
    /// It was not even tried: the place is out of reach, or can't do it.
    Unavailable,
}

/// What went wrong, as the place knows it: without the file that was asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Trouble {
    kind: FileErrorKind,
    message: Arc<str>,
    /// What has become of the place.
    place: Option<Error>,
}

impl FileError {
    pub(crate) fn new(attempt: &'static str, path: &Path, trouble: Trouble) -> Self {
        FileError {
            attempt,
            path: path.to_owned(),
            trouble,
        }
    }

    /// What to tell apart.
    #[must_use]
    pub fn kind(&self) -> FileErrorKind {
        self.trouble.kind
    }

    /// Which file it is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The words of the place; where its operating system said no, with those of
    /// that.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.trouble.message
    }

    /// The number of the operating system's error, where it was that.
    #[must_use]
    pub fn os_error(&self) -> Option<i32> {
        os_error(&self.trouble.message)
    }

    /// What has become of the place, where that is the reason.
    #[must_use]
    pub fn place(&self) -> Option<&Error> {
        self.trouble.place.as_ref()
    }
}

impl Trouble {
    pub(crate) fn new(kind: FileErrorKind, message: impl Into<Arc<str>>) -> Self {
        Trouble {
            kind,
            message: message.into(),
            place: None,
        }
    }

    /// A refusal in the words of a file system. Permissions share a code with
    /// mistakes, and are told by the number of the error.
    pub(crate) fn refused(kind: FileErrorKind, message: impl Into<Arc<str>>) -> Self {
        const EPERM: i32 = 1;
        const EACCES: i32 = 13;
        let message = message.into();
        let denied = matches!(os_error(&message), Some(EPERM | EACCES));
        let kind = match kind {
            FileErrorKind::Invalid if denied => FileErrorKind::Denied,
            kind => kind,
        };
        Trouble::new(kind, message)
    }

    /// The same, said of a path behind which the open file isn't any more.
    pub(crate) fn of_another_file(self) -> Self {
        match self.kind {
            FileErrorKind::NotFound | FileErrorKind::Denied | FileErrorKind::Invalid => Trouble {
                kind: FileErrorKind::Changed,
                ..self
            },
            _ => self,
        }
    }

    /// The place is out of reach, or can't do it.
    pub(crate) fn unavailable(place: Error) -> Self {
        Trouble::lost(FileErrorKind::Unavailable, place)
    }

    /// What it means for a file that its place is lost for good.
    pub(crate) fn lost(kind: FileErrorKind, place: Error) -> Self {
        Trouble {
            kind,
            message: place.to_string().into(),
            place: Some(place),
        }
    }
}

/// What a code of the wire says about a file; none if it is about the place.
pub(crate) fn class_of_code(number: i64) -> Option<FileErrorKind> {
    match number {
        code::NOT_FOUND => Some(FileErrorKind::NotFound),
        code::INVALID_REQUEST | code::INVALID_PARAMS => Some(FileErrorKind::Invalid),
        code::INTERNAL_ERROR => Some(FileErrorKind::Failed),
        _ => None,
    }
}

impl From<RpcError> for Trouble {
    fn from(refusal: RpcError) -> Self {
        match class_of_code(refusal.code) {
            Some(kind) => Trouble::refused(kind, refusal.message),
            None => Trouble::unavailable(refusal.into()),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused { code, message } => match class_of_code(code) {
                Some(kind) => Trouble::refused(kind, message),
                None => Trouble::unavailable(Error::Refused { code, message }),
            },
            error => Trouble::unavailable(error),
        }
    }
}

fn os_error(message: &str) -> Option<i32> {
    let (_, number) = message.rsplit_once(OS_ERROR)?;
    number.strip_suffix(')')?.parse().ok()
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let of_system = || {
            let number = error.os_error()?;
            Some(io::Error::from_raw_os_error(number).kind())
        };
        let kind = match error.kind() {
            FileErrorKind::NotFound => io::ErrorKind::NotFound,
            FileErrorKind::Denied => io::ErrorKind::PermissionDenied,
            FileErrorKind::Invalid => of_system().unwrap_or(io::ErrorKind::InvalidInput),
            FileErrorKind::Failed => of_system().unwrap_or(io::ErrorKind::Other),
            FileErrorKind::Changed => io::ErrorKind::StaleNetworkFileHandle,
            FileErrorKind::Interrupted | FileErrorKind::Unknown => io::ErrorKind::ConnectionAborted,
            FileErrorKind::Unavailable => match error.place() {
                Some(Error::Disconnected { .. }) => io::ErrorKind::ConnectionAborted,
                _ => io::ErrorKind::Unsupported,
            },
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_wire(number: i64, message: &str) -> FileError {
        let refusal = RpcError::new(number, message);
        FileError::new("read", Path::new("/a b"), refusal.into())
    }

    #[test]
    fn what_a_code_and_its_words_say() {
        for (number, words, kind, os) in [
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
            let error = of_wire(number, words);
            assert_eq!((error.kind(), error.os_error()), (kind, os), "{words}");
            assert_eq!(error.place().is_some(), kind == FileErrorKind::Unavailable);
        }
    }

    #[test]
    fn it_says_what_was_tried_on_what() {
        let error = of_wire(code::INTERNAL_ERROR, "File exists (os error 17)");
        assert_eq!(
            error.to_string(),
            "cannot read \"/a b\": File exists (os error 17)"
        );
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::AlreadyExists);
    }
}
