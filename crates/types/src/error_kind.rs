//! Kinds of errors.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine-readable kind of an error: `kind` in `error.data`.
///
/// Messages are for people; programs decide by kind. A kind of a newer server is read as
/// [`ErrorKind::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is not possible in the present state.
    InvalidRequest,
    /// The method does not exist.
    MethodNotFound,
    /// A param cannot be decoded or is out of range.
    InvalidParams,
    /// The server failed.
    Internal,
    /// A limit is reached; the same request may succeed later.
    Overloaded,
    /// There is not enough memory for this request.
    OutOfMemory,
    /// The peer may not do this.
    Forbidden,
    /// A message is not a valid JSON-RPC message.
    MalformedMessage,
    /// A notification or response that was not expected.
    UnexpectedMessage,
    /// The handshake is not complete, or was repeated.
    Handshake,
    /// The session does not exist or has expired.
    UnknownSession,
    /// The session is attached to another connection.
    SessionAttached,
    /// Another connection took over the session.
    SessionReplaced,
    /// The session or the connection has ended.
    SessionEnded,
    /// The process does not exist or has ended.
    UnknownProcess,
    /// The process id is in use.
    DuplicateProcess,
    /// The start was cancelled by a terminate.
    StartCancelled,
    /// The program does not exist.
    ProgramNotFound,
    /// The program exists but cannot be executed.
    ProgramNotExecutable,
    /// The working directory cannot be entered.
    WorkingDirectory,
    /// The operating system could not create the process.
    SpawnFailed,
    /// The sandbox cannot be enforced.
    Sandbox,
    /// The process takes no input, or its stdin is closed.
    StdinClosed,
    /// The process has no terminal.
    NotATerminal,
    /// The path does not exist.
    NotFound,
    /// The operating system denies access to the path.
    PermissionDenied,
    /// The file handle is not open.
    UnknownHandle,
    /// An operation on a file failed.
    Io,
    /// An HTTP request failed.
    Http,
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
