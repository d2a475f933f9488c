//! Writing, resizing and killing, with the error messages of the dialect.

use std::time::Duration;

use bytes::Bytes;
use outpost_engine::{Process, WriteStatus};
use outpost_protocol::{Empty, ErrorKind, RpcError, TerminalSize, base64};

use super::start_request::check_size;
use crate::{connection::Scope, convert::Dialect};

/// Writes to stdin, and closes it if requested.
pub(crate) async fn write(
    scope: &Scope,
    dialect: &Dialect,
    name: &str,
    delta: Option<&str>,
    close: bool,
) -> Result<Empty, RpcError> {
    if delta.is_none() && !close {
        return Err(dialect.nothing_to_write());
    }
    let bytes = base64::decode(delta.unwrap_or_default().as_bytes())
        .map_err(|error| RpcError::invalid_params(format!("invalid deltaBase64: {error}")))?;
    let process = running(scope, dialect, name)?;
    if !process.about().takes_input {
        return Err(dialect.takes_no_input());
    }
    let only_close = bytes.is_empty() && close;
    let status = process.write(Bytes::from(bytes), None, close).await;
    match status {
        WriteStatus::Accepted => Ok(Empty {}),
        // Closing a closed stdin succeeds.
        _ if only_close => Ok(Empty {}),
        _ if !process.is_running() => Err(dialect.gone(name)),
        _ => {
            Err(RpcError::invalid_request("stdin is already closed")
                .with_kind(ErrorKind::StdinClosed))
        }
    }
}

/// Resizes the terminal. Waits for a start in flight.
pub(crate) async fn resize(
    scope: &Scope,
    dialect: &Dialect,
    name: &str,
    size: TerminalSize,
) -> Result<Empty, RpcError> {
    let size = check_size(dialect, size)?;
    scope.session().wait_started(name).await;
    let process = running(scope, dialect, name)?;
    if !process.is_pty() {
        return Err(RpcError::invalid_request(
            "failed to resize PTY: process is not attached to a PTY",
        )
        .with_kind(ErrorKind::NotATerminal));
    }
    match process.resize(size) {
        Ok(()) => Ok(Empty {}),
        Err(_) if !process.is_running() => Err(dialect.gone(name)),
        Err(error) => Err(RpcError::internal(format!("failed to resize PTY: {error}"))),
    }
}

/// Kills a process with its tree. Waits for a start in flight.
pub(crate) async fn kill(scope: &Scope, dialect: &Dialect, name: &str) -> Result<Empty, RpcError> {
    scope.session().wait_started(name).await;
    running(scope, dialect, name)?.end(Some(Duration::ZERO));
    Ok(Empty {})
}

fn running(scope: &Scope, dialect: &Dialect, name: &str) -> Result<Process, RpcError> {
    let process = scope.session().find(name);
    let process = process.map_err(|_| dialect.unknown(name))?;
    if process.is_running() {
        Ok(process)
    } else {
        Err(dialect.gone(name))
    }
}
