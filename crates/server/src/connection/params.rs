//! Parsing of params, and the session and lane of a request.

use outpost_protocol::{
    ReadParams, RpcError, SessionCloseParams, SignalParams, TerminateParams, parse_params,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Caller, Reply};

/// Limit for client text that is echoed in an error message, in characters.
const MAX_ECHOED_CHARS: usize = 300;

/// Truncates text that may echo megabytes of the request.
pub(super) fn truncated(text: &str) -> String {
    text.chars().take(MAX_ECHOED_CHARS).collect()
}

/// Parses params. Rejects the request if they are invalid.
pub(super) fn parsed<'a, T: Deserialize<'a>>(
    params: Option<&'a RawValue>,
    reply: Reply,
) -> Option<(T, Reply)> {
    match parse_params(params) {
        Ok(params) => Some((params, reply)),
        Err(error) => {
            let text = truncated(&error.to_string());
            let error = RpcError::invalid_params(format!("invalid params: {text}"));
            reply.send::<()>(Err(error));
            None
        }
    }
}

/// Params that may name another session than the caller's.
pub(super) trait CrossSession {
    fn session_id(&self) -> Option<&str>;
}

/// Resolves the session that the params name. Rejects the request if the caller may not
/// access it.
pub(super) fn resolve_session<T: CrossSession>(
    (caller, params, reply): (Caller, T, Reply),
) -> Option<(Caller, T, Reply)> {
    match caller.for_session(params.session_id()) {
        Ok(caller) => Some((caller, params, reply)),
        Err(error) => {
            reply.send::<()>(Err(error));
            None
        }
    }
}

/// Returns the lane key of a process. Includes the session if it is not the caller's own,
/// where a process may have the same name.
pub(super) fn lane(process: &str, params: &impl CrossSession) -> String {
    match params.session_id() {
        None => process.to_owned(),
        Some(session) => format!("{session}/{process}"),
    }
}

impl CrossSession for ReadParams {
    fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }
}

impl CrossSession for SignalParams {
    fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }
}

impl CrossSession for TerminateParams {
    fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }
}

impl CrossSession for SessionCloseParams {
    fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }
}
