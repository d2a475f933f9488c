//! The words of the files, theirs and ours.

use std::path::PathBuf;

use outpost_files::{ErrorKind, FilesError, Links};
use outpost_protocol::{FsPath, RpcError, code};

use crate::faces::fs::Occupied;

/// The longest name that a client may give to something it has open, in bytes.
const MAX_HANDLE_BYTES: usize = 32;

/// Why an operation failed.
pub(crate) fn files_error(error: &FilesError) -> RpcError {
    let code = match error.kind() {
        ErrorKind::NotFound => code::NOT_FOUND,
        ErrorKind::Invalid => code::INVALID_REQUEST,
        ErrorKind::Failed => code::INTERNAL_ERROR,
    };
    RpcError::new(code, error.to_string())
}

/// The native path, if it is one of this host.
pub(crate) fn path(path: FsPath) -> Result<PathBuf, RpcError> {
    path.into_path()
        .map_err(|error| RpcError::invalid_request(error.to_string()))
}

pub(crate) fn links(follow: bool) -> Links {
    if follow { Links::Follow } else { Links::Refuse }
}

/// A name that a client has given to what it opens.
pub(crate) fn check_handle(id: &str) -> Result<(), RpcError> {
    if id.len() > MAX_HANDLE_BYTES {
        return Err(RpcError::invalid_request(format!(
            "handleId must be at most {MAX_HANDLE_BYTES} bytes long"
        )));
    }
    Ok(())
}

/// Why nothing more can be opened under a name.
pub(crate) fn occupied(occupied: Occupied, id: &str) -> RpcError {
    RpcError::invalid_request(match occupied {
        Occupied::Exists => format!("file read handle `{id}` already exists"),
        Occupied::TooMany(limit) => {
            format!("at most {limit} file reads may be open per connection")
        }
        Occupied::Closed => "the connection has ended".to_owned(),
    })
}

pub(crate) fn unknown_read_handle(id: &str) -> RpcError {
    let id = known_part(id);
    RpcError::new(code::NOT_FOUND, format!("unknown file read handle `{id}`"))
}

pub(crate) fn unknown_write_handle(id: &str) -> RpcError {
    let id = known_part(id);
    RpcError::new(code::NOT_FOUND, format!("unknown file write handle `{id}`"))
}

/// As much of a name as could have been one.
fn known_part(id: &str) -> String {
    id.chars().take(MAX_HANDLE_BYTES).collect()
}
