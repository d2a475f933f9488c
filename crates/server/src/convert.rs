//! Codes and kinds of errors, and the length limit of ids.

use std::fmt::Display;

use outpost_engine::{NotPermitted, NotRecorded, ResizeError, ResumeError, StartError};
use outpost_files::{FilesError, WatchError};
use outpost_protocol::{ErrorKind, FileErrorKind, RpcError, code};

/// The limit of an id that a client chooses, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// Checks the length of the text in the member `what`.
pub(crate) fn check_length(what: &str, text: &str, limit: usize) -> Result<(), RpcError> {
    if text.len() > limit {
        return Err(RpcError::invalid_params(format!(
            "{what} must be at most {limit} bytes long"
        )));
    }
    Ok(())
}

pub(crate) fn start_error(error: &StartError) -> RpcError {
    match error {
        StartError::ProcessLimit(_) | StartError::SessionLimit(_) => {
            RpcError::limit_reached(error.to_string())
        }
        _ => RpcError::of_kind(error.kind(), error.errno(), error.to_string()),
    }
}

pub(crate) fn not_recorded(error: NotRecorded) -> RpcError {
    RpcError::internal(error.to_string())
}

pub(crate) fn not_permitted(error: NotPermitted) -> RpcError {
    RpcError::not_permitted(error.to_string())
}

pub(crate) fn resume_error(error: ResumeError, id: &str) -> RpcError {
    let (kind, message) = match error {
        ResumeError::Gone => (
            ErrorKind::UnknownSession,
            format!("unknown session id {id}"),
        ),
        ResumeError::Attached => (
            ErrorKind::SessionAttached,
            format!("session {id} is already attached to another connection"),
        ),
    };
    RpcError::of_kind(kind, None, message)
}

pub(crate) fn resize_error(error: &ResizeError) -> RpcError {
    RpcError::of_kind(error.kind(), error.errno(), error.to_string())
}

/// Converts the error of a file operation.
pub(crate) fn files_error(error: &FilesError) -> RpcError {
    if matches!(error, FilesError::NoListingMemory) {
        return RpcError::overloaded();
    }
    let kind = match error.kind() {
        FileErrorKind::NotFound => ErrorKind::NotFound,
        FileErrorKind::Denied => ErrorKind::PermissionDenied,
        FileErrorKind::Invalid => ErrorKind::InvalidRequest,
        _ => ErrorKind::Io,
    };
    RpcError::of_kind(kind, error.errno(), error.to_string())
}

/// Converts the error of a file operation for a client of the app-server, whose codes do not tell
/// errors of the operating system apart.
pub(crate) fn app_error(error: &RpcError) -> RpcError {
    let kind = error.data.as_ref().map(|data| data.kind);
    let code = match kind {
        Some(ErrorKind::NotFound | ErrorKind::PermissionDenied) => code::INTERNAL_ERROR,
        _ => error.code,
    };
    RpcError {
        code,
        ..error.clone()
    }
}

/// Converts the error of a watch.
pub(crate) fn watch_error(error: &WatchError) -> RpcError {
    let kind = match error.kind() {
        FileErrorKind::NotFound => ErrorKind::NotFound,
        FileErrorKind::Denied => ErrorKind::PermissionDenied,
        FileErrorKind::Invalid => ErrorKind::InvalidRequest,
        _ => ErrorKind::Io,
    };
    RpcError::of_kind(kind, error.errno(), error.to_string())
}

/// Returns the error for an HTTP request without a response.
pub(crate) fn fetch_error(error: impl Display) -> RpcError {
    RpcError::internal(format!("http/request failed: {error}")).with_kind(ErrorKind::Http)
}

#[cfg(test)]
mod tests {
    use outpost_engine::SpawnError;

    use super::*;

    #[test]
    fn start_errors_have_codes_kinds_and_errnos() {
        let spawn = |error: SpawnError| start_error(&StartError::from(error));
        let errors = [
            start_error(&StartError::Exists("p".to_owned())),
            start_error(&StartError::Cancelled("p".to_owned())),
            start_error(&StartError::SessionEnded),
            start_error(&StartError::TooMany),
            start_error(&StartError::ProcessLimit(50)),
            start_error(&StartError::SessionLimit(10)),
            spawn(SpawnError::not_executed("nosuch", 2)),
            spawn(SpawnError::not_executed("noexec", 13)),
            spawn(SpawnError::not_entered("/nope", 2)),
            resume_error(ResumeError::Gone, "s"),
            resume_error(ResumeError::Attached, "s"),
            resize_error(&ResizeError::Unknown("p".to_owned())),
            resize_error(&ResizeError::NotATerminal("p".to_owned())),
        ];
        let lines = errors.map(|error| serde_json::to_string(&error).expect("it serializes"));
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"code":-32600,"message":"process p already exists","data":{"kind":"duplicateProcess"}}
        {"code":-32600,"message":"process p start was cancelled","data":{"kind":"startCancelled"}}
        {"code":-32600,"message":"the session has ended","data":{"kind":"sessionEnded"}}
        {"code":-32001,"message":"Server overloaded; retry later.","data":{"kind":"overloaded"}}
        {"code":-32001,"message":"limit of the principal: 50 processes at once (limits.processes); wait for one, or end one, such as with outpost kill","data":{"kind":"overloaded"}}
        {"code":-32001,"message":"limit of the principal: 10 sessions with processes at once (limits.sessions); end one, such as with outpost kill; outpost ps lists them","data":{"kind":"overloaded"}}
        {"code":-32603,"message":"cannot execute \"nosuch\": No such file or directory (os error 2)","data":{"kind":"programNotFound","errno":2}}
        {"code":-32603,"message":"cannot execute \"noexec\": Permission denied (os error 13)","data":{"kind":"programNotExecutable","errno":13}}
        {"code":-32603,"message":"cannot enter directory \"/nope\": No such file or directory (os error 2)","data":{"kind":"workingDirectory","errno":2}}
        {"code":-32600,"message":"unknown session id s","data":{"kind":"unknownSession"}}
        {"code":-32010,"message":"session s is already attached to another connection","data":{"kind":"sessionAttached"}}
        {"code":-32600,"message":"unknown process id p","data":{"kind":"unknownProcess"}}
        {"code":-32600,"message":"process p is not attached to a PTY","data":{"kind":"notATerminal"}}
        "#);
    }
}
