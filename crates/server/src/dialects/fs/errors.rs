//! Errors of the `fs/*` methods.

use std::path::PathBuf;

use outpost_files::FilesError;
use outpost_protocol::{ErrorKind, FileErrorKind, FsPath, RpcError, code};

use super::OpenRejected;

/// The longest id of a handle, in bytes.
const MAX_HANDLE_BYTES: usize = 32;

/// The error response for a failed operation.
pub(crate) fn files_error(error: &FilesError) -> RpcError {
    let (code, kind) = match error.kind() {
        FileErrorKind::NotFound => (code::NOT_FOUND, ErrorKind::NotFound),
        FileErrorKind::Denied => (code::INVALID_REQUEST, ErrorKind::PermissionDenied),
        FileErrorKind::Invalid => (code::INVALID_REQUEST, ErrorKind::InvalidRequest),
        _ => (code::INTERNAL_ERROR, ErrorKind::Io),
    };
    RpcError::new(code, kind, error.to_string()).with_errno(error.errno())
}

/// The native path. Rejects a path of another host.
pub(crate) fn native_path(path: FsPath) -> Result<PathBuf, RpcError> {
    path.into_path()
        .map_err(|error| RpcError::invalid_request(error.to_string()))
}

/// Rejects a handle id that is too long.
pub(crate) fn check_handle(id: &str) -> Result<(), RpcError> {
    if id.len() > MAX_HANDLE_BYTES {
        return Err(RpcError::invalid_request(format!(
            "handleId must be at most {MAX_HANDLE_BYTES} bytes long"
        )));
    }
    Ok(())
}

/// The error response for a handle that cannot be opened.
pub(crate) fn open_rejected(rejected: OpenRejected, id: &str) -> RpcError {
    RpcError::invalid_request(match rejected {
        OpenRejected::Exists => format!("file read handle `{id}` already exists"),
        OpenRejected::TooMany(limit) => {
            format!("at most {limit} file reads may be open per connection")
        }
        OpenRejected::Closed => "the connection has ended".to_owned(),
    })
}

pub(crate) fn unknown_read_handle(id: &str) -> RpcError {
    unknown_handle(format!("unknown file read handle `{}`", truncated(id)))
}

pub(crate) fn unknown_write_handle(id: &str) -> RpcError {
    unknown_handle(format!("unknown file write handle `{}`", truncated(id)))
}

fn unknown_handle(message: String) -> RpcError {
    RpcError::new(code::NOT_FOUND, ErrorKind::UnknownHandle, message)
}

fn truncated(id: &str) -> String {
    id.chars().take(MAX_HANDLE_BYTES).collect()
}
