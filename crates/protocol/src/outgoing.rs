//! Encoders of outgoing messages.
//!
//! Each function appends one message to `out`, without framing. If it fails, `out` is unchanged, so
//! that no partial message reaches the wire.

use serde::Serialize;

use crate::{RequestId, RpcError};

/// A successful response on the wire.
#[derive(Serialize)]
struct Response<'a, T> {
    id: &'a RequestId,
    result: &'a T,
}

/// An error response on the wire.
#[derive(Serialize)]
struct ErrorResponse<'a> {
    id: &'a RequestId,
    error: &'a RpcError,
}

/// A request on the wire.
#[derive(Serialize)]
struct Request<'a, T> {
    id: i64,
    method: &'a str,
    params: &'a T,
}

/// A notification on the wire.
#[derive(Serialize)]
struct Notification<'a, T> {
    method: &'a str,
    params: &'a T,
}

/// Appends `{"id":…,"result":…}`.
pub fn encode_response<T: Serialize>(
    out: &mut Vec<u8>,
    id: &RequestId,
    result: &T,
) -> Result<(), serde_json::Error> {
    append(out, &Response { id, result })
}

/// Appends `{"id":…,"error":{"code":…,"message":…}}`, with `data` if there is any.
pub fn encode_error(out: &mut Vec<u8>, id: &RequestId, error: &RpcError) {
    append(out, &ErrorResponse { id, error })
        .expect("strings, integers and JSON values can always be written to memory");
}

/// Appends `{"id":…,"method":…,"params":…}`.
pub fn encode_request<T: Serialize>(
    out: &mut Vec<u8>,
    id: i64,
    method: &str,
    params: &T,
) -> Result<(), serde_json::Error> {
    append(out, &Request { id, method, params })
}

/// Appends `{"method":…,"params":…}`.
pub fn encode_notification<T: Serialize>(
    out: &mut Vec<u8>,
    method: &str,
    params: &T,
) -> Result<(), serde_json::Error> {
    append(out, &Notification { method, params })
}

fn append(out: &mut Vec<u8>, message: &impl Serialize) -> Result<(), serde_json::Error> {
    let before = out.len();
    serde_json::to_writer(&mut *out, message).inspect_err(|_| out.truncate(before))
}
