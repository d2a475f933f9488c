//! What became of a request that this machine was to make.

use outpost_fetch::{FetchError, RequestError};
use outpost_protocol::RpcError;

/// Why there is nothing more of a response that its client gave up.
pub(crate) const CANCELLED: &str = "it was cancelled";

/// Nothing was sent: the params say something that can't be.
pub(crate) fn request_error(error: &RequestError) -> RpcError {
    RpcError::invalid_params(format!("http/request {error}"))
}

pub(crate) fn fetch_error(error: &FetchError) -> RpcError {
    RpcError::internal(format!("http/request failed: {error}"))
}

pub(crate) fn cancelled_request() -> RpcError {
    RpcError::internal(format!("http/request failed: {CANCELLED}"))
}
