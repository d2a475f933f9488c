//! Errors of a local executor, with the codes and texts of a server.

use outpost_engine::{
    ResizeError, StartError,
    sandbox::{PrepareError, Unenforceable},
};
use outpost_protocol::{Confinement, ErrorKind, RpcError, SandboxParams, TerminalSize, code};

use crate::Error;

/// Rejects a sandbox that would have to be enforced, where there is no engine to do so.
pub(super) fn check_sandbox(sandbox: &SandboxParams) -> Result<(), RpcError> {
    match sandbox.permissions {
        Confinement::Managed { .. } => {
            let error = PrepareError::from(Unenforceable::NoHelper);
            Err(start_error(&StartError::Sandbox(error.into())))
        }
        Confinement::Disabled | Confinement::External => Ok(()),
    }
}

/// Rejects a terminal without rows or columns.
pub(super) fn check_size(size: TerminalSize) -> Result<(), RpcError> {
    if size.rows == 0 || size.cols == 0 {
        return Err(RpcError::invalid_params(
            "size rows and cols must be greater than 0",
        ));
    }
    Ok(())
}

pub(super) fn start_error(error: &StartError) -> RpcError {
    let code = match error {
        StartError::Exists(_) | StartError::Cancelled(_) | StartError::SessionEnded => {
            code::INVALID_REQUEST
        }
        StartError::TooMany => return RpcError::overloaded(),
        StartError::Sandbox(_) => code::INVALID_PARAMS,
        // The arguments or the environment cannot be passed to any program.
        StartError::Spawn(_) if error.kind() == ErrorKind::InvalidParams => code::INVALID_PARAMS,
        StartError::Spawn(_) => code::INTERNAL_ERROR,
    };
    RpcError::new(code, error.kind(), error.to_string()).with_errno(error.errno())
}

pub(super) fn resize_error(error: &ResizeError) -> Error {
    let code = match error {
        ResizeError::Unknown(_) | ResizeError::NotATerminal(_) => code::INVALID_REQUEST,
        ResizeError::Os { .. } => code::INTERNAL_ERROR,
    };
    let error = RpcError::new(code, error.kind(), error.to_string()).with_errno(error.errno());
    error.into()
}
