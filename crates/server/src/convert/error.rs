//! The one place where an error of the engine gets its code.

use outpost_engine::{ResizeError, ResumeRefusal, SpawnErrorKind, StartError};
use outpost_protocol::{RpcError, code};

pub(crate) fn start_error(error: &StartError) -> RpcError {
    match error {
        StartError::Exists(_) | StartError::Cancelled(_) | StartError::SessionEnded => {
            RpcError::invalid_request(error.to_string())
        }
        StartError::TooMany => RpcError::overloaded(),
        // What the system was never asked is the client's mistake.
        StartError::Spawn(error)
            if matches!(
                error.kind(),
                SpawnErrorKind::Arguments | SpawnErrorKind::Environment
            ) && error.raw_os_error().is_none() =>
        {
            RpcError::invalid_params(error.to_string())
        }
        StartError::Spawn(error) => RpcError::internal(error.to_string()),
        StartError::Sandbox(refusal) => RpcError::invalid_params(refusal.to_string()),
    }
}

pub(crate) fn resume_refusal(refusal: ResumeRefusal, id: &str) -> RpcError {
    match refusal {
        ResumeRefusal::Gone => RpcError::invalid_request(format!("unknown session id {id}")),
        ResumeRefusal::Attached => RpcError::new(
            code::SESSION_ATTACHED,
            format!("session {id} is already attached to another connection"),
        ),
    }
}

pub(crate) fn resize_error(error: &ResizeError) -> RpcError {
    match error {
        ResizeError::Unknown(_) | ResizeError::NotATerminal(_) => {
            RpcError::invalid_request(error.to_string())
        }
        ResizeError::Os { .. } => RpcError::internal(error.to_string()),
    }
}
