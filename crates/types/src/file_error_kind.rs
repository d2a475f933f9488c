//! The kinds of errors of file operations.

/// The kind of a failed file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The path does not exist.
    NotFound,
    /// The operating system denied access.
    Denied,
    /// The request is invalid for this path.
    Invalid,
    /// The operation was tried and failed.
    Failed,
    /// The connection was lost while a file was read, and the file has changed since: the rest would
    /// not belong to the same content.
    Changed,
    /// The connection was lost while a file was written. The old file is unchanged.
    Interrupted,
    /// The connection was lost during the commit of a file. It may or may not have been replaced.
    Unknown,
    /// The operation was not tried: the executor is unreachable or does not support it.
    Unavailable,
}
