//! The one place where an error of the engine gets its code.

use outpost_engine::{ResizeError, StartError};
use outpost_protocol::RpcError;

pub(crate) fn start_error(error: &StartError) -> RpcError {
    match error {
        StartError::Exists(_) | StartError::Cancelled(_) | StartError::SessionEnded => {
            RpcError::invalid_request(error.to_string())
        }
        StartError::TooMany => RpcError::overloaded(),
        StartError::Spawn(error) => RpcError::internal(error.to_string()),
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
