//! The error a request is answered with.

use serde::{Deserialize, Serialize};

use crate::code;

/// What stands under `error` in an answer: a code, words for a human, and sometimes data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// One of the constants in [`code`].
    pub code: i64,
    /// What went wrong. Clients match on some of these texts, so they are part of the contract.
    pub message: String,
    /// Details for programs; the member is left out when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The request can't be served in the present state.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// Nothing here answers to this name.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, format!("unknown method: {method}"))
    }

    /// The params can't be decoded, or hold a value that is out of range.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// The request was fine and the server or its host failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }

    /// Too much is under way; the same request may succeed later.
    pub fn overloaded() -> Self {
        Self::new(code::OVERLOADED, "Server overloaded; retry later.")
    }
}
