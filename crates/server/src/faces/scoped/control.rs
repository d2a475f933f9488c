//! Input, size and end of a process, in the words of its face.

use std::time::Duration;

use bytes::Bytes;
use outpost_engine::{Process, WriteStatus};
use outpost_protocol::{Empty, RpcError, Size, base64};

use super::wish::sized;
use crate::{connection::Scope, convert::Dialect};

/// Writes to a process, and ends its input if that is wanted.
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
        // An end that has come already is what was wanted.
        _ if only_close => Ok(Empty {}),
        _ if !process.is_running() => Err(dialect.gone(name)),
        _ => Err(RpcError::invalid_request("stdin is already closed")),
    }
}

/// Gives a terminal another size, as soon as it exists.
pub(crate) async fn resize(
    scope: &Scope,
    dialect: &Dialect,
    name: &str,
    size: Size,
) -> Result<Empty, RpcError> {
    let size = sized(dialect, size)?;
    scope.session().settled(name).await;
    let process = running(scope, dialect, name)?;
    if !process.is_pty() {
        return Err(RpcError::invalid_request(
            "failed to resize PTY: process is not attached to a PTY",
        ));
    }
    match process.resize(size) {
        Ok(()) => Ok(Empty {}),
        Err(_) if !process.is_running() => Err(dialect.gone(name)),
        Err(error) => Err(RpcError::internal(format!("failed to resize PTY: {error}"))),
    }
}

/// Kills a process with its tree, as soon as it exists.
pub(crate) async fn kill(scope: &Scope, dialect: &Dialect, name: &str) -> Result<Empty, RpcError> {
    scope.session().settled(name).await;
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
