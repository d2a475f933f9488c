//! Checks and conversions of process params.

use std::collections::BTreeMap;

use outpost_protocol::{RpcError, TerminalSize};

/// The limit of an id that a client chooses, in bytes.
const MAX_NAME_BYTES: usize = 256;
/// The limit of an id in a dialect that documents none, in bytes.
const MAX_SCOPED_NAME_BYTES: usize = 1024;

/// Checks the length of an id in the member `what`.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), RpcError> {
    check_length(what, name, MAX_NAME_BYTES)
}

/// Checks the length of an id that belongs to a connection, in the member `what`.
pub(crate) fn check_scoped_name(what: &str, name: &str) -> Result<(), RpcError> {
    check_length(what, name, MAX_SCOPED_NAME_BYTES)
}

fn check_length(what: &str, name: &str, limit: usize) -> Result<(), RpcError> {
    if name.len() > limit {
        return Err(RpcError::invalid_params(format!(
            "{what} must be at most {limit} bytes long"
        )));
    }
    Ok(())
}

/// Rejects a terminal without rows or columns.
pub(crate) fn check_size(size: TerminalSize) -> Result<(), RpcError> {
    if size.rows == 0 || size.cols == 0 {
        return Err(RpcError::invalid_params(
            "size rows and cols must be greater than 0",
        ));
    }
    Ok(())
}

/// Converts variables to an overlay that sets all of them and unsets none.
pub(crate) fn overlay(env: BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    env.into_iter()
        .map(|(name, value)| (name, Some(value)))
        .collect()
}
