//! What a local place refuses, with the codes and words of a server: who holds a
//! place can't tell which one said no.

use outpost_engine::{
    ResizeError, SpawnErrorKind, StartError,
    sandbox::{PrepareError, Unenforceable},
};
use outpost_protocol::{Permissions, RpcError, SandboxParams, Size, StartParams};

use crate::Error;

/// The longest name of a process, in bytes.
const MAX_ID_BYTES: usize = 256;

/// What can be said about a start without trying it.
pub(super) fn check(params: &StartParams) -> Result<(), RpcError> {
    let invalid = |words: &str| Err(RpcError::invalid_params(words));
    if params.process_id.is_empty() {
        return invalid("processId must not be empty");
    }
    if params.process_id.len() > MAX_ID_BYTES {
        return invalid("processId must be at most 256 bytes long");
    }
    if params.argv.is_empty() {
        return invalid("argv must not be empty");
    }
    if let Some(size) = params.size {
        check_size(size)?;
    }
    if params.enforce_managed_network {
        return invalid(
            "sandbox intent cannot be enforced on this executor: a managed network is not supported by this version",
        );
    }
    Ok(())
}

/// What a sandbox is answered with where there is nothing to confine with, if anything would have to
/// be enforced.
pub(super) fn check_sandbox(sandbox: &SandboxParams) -> Result<(), RpcError> {
    match sandbox.permissions {
        Permissions::Managed { .. } => {
            let refusal = PrepareError::from(Unenforceable::NoStages);
            Err(of_start(&StartError::Sandbox(refusal.into())))
        }
        Permissions::Disabled | Permissions::External => Ok(()),
    }
}

/// A terminal has at least one row and one column.
pub(super) fn check_size(size: Size) -> Result<(), RpcError> {
    if size.rows == 0 || size.cols == 0 {
        return Err(RpcError::invalid_params(
            "size rows and cols must be greater than 0",
        ));
    }
    Ok(())
}

pub(super) fn of_start(error: &StartError) -> RpcError {
    match error {
        StartError::Exists(_) | StartError::Cancelled(_) | StartError::SessionEnded => {
            RpcError::invalid_request(error.to_string())
        }
        StartError::TooMany => RpcError::overloaded(),
        StartError::Sandbox(refusal) => RpcError::invalid_params(refusal.to_string()),
        StartError::Spawn(spawn) => {
            // What the system was never asked is the caller's mistake.
            let never_asked = matches!(
                spawn.kind(),
                SpawnErrorKind::Arguments | SpawnErrorKind::Environment
            ) && spawn.raw_os_error().is_none();
            if never_asked {
                RpcError::invalid_params(spawn.to_string())
            } else {
                RpcError::internal(spawn.to_string())
            }
        }
    }
}

pub(super) fn of_resize(error: &ResizeError) -> Error {
    let refusal = match error {
        ResizeError::Unknown(_) | ResizeError::NotATerminal(_) => {
            RpcError::invalid_request(error.to_string())
        }
        ResizeError::Os { .. } => RpcError::internal(error.to_string()),
    };
    refusal.into()
}
