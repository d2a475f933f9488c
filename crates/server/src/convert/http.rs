//! Errors of HTTP requests.

use outpost_fetch::{FetchError, RequestError};
use outpost_protocol::{ErrorKind, RpcError};

/// The error text of a cancelled response.
pub(crate) const CANCELLED: &str = "it was cancelled";

/// Converts an error in the params. Nothing was sent.
pub(crate) fn request_error(error: &RequestError) -> RpcError {
    RpcError::invalid_params(format!("http/request {error}"))
}

pub(crate) fn fetch_error(error: &FetchError) -> RpcError {
    RpcError::internal(format!("http/request failed: {error}")).with_kind(ErrorKind::Http)
}

pub(crate) fn cancelled_request() -> RpcError {
    RpcError::internal(format!("http/request failed: {CANCELLED}")).with_kind(ErrorKind::Http)
}
