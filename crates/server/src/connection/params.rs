//! From raw params to typed ones, and to what they are about.

use outpost_protocol::{
    ReadParams, RpcError, SessionCloseParams, SignalParams, TerminateParams, parse_params,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Caller, Reply};

/// How much of a parser's complaint is passed on.
const MAX_WORDS: usize = 300;

/// What was sent may be megabytes long; who is told about it needs less.
pub(super) fn shortened(words: &str) -> String {
    words.chars().take(MAX_WORDS).collect()
}

/// The params; what can't be parsed is answered here.
pub(super) fn parsed<'a, T: Deserialize<'a>>(
    params: Option<&'a RawValue>,
    reply: Reply,
) -> Option<(T, Reply)> {
    match parse_params(params) {
        Ok(params) => Some((params, reply)),
        Err(error) => {
            let words = shortened(&error.to_string());
            let refusal = RpcError::invalid_params(format!("invalid params: {words}"));
            reply.send::<()>(Err(refusal));
            None
        }
    }
}

/// Params that may name a session which isn't the caller's own.
pub(super) trait Reaching {
    fn session_id(&self) -> Option<&str>;
}

/// The caller, about the session that the params name; what it may not ask for
/// is answered here.
pub(super) fn reached<T: Reaching>(
    (caller, params, reply): (Caller, T, Reply),
) -> Option<(Caller, T, Reply)> {
    match caller.about(params.session_id()) {
        Ok(caller) => Some((caller, params, reply)),
        Err(refusal) => {
            reply.send::<()>(Err(refusal));
            None
        }
    }
}

/// What requests about a process wait behind each other for. Those that reach
/// into another session have nothing to do with a process of this name here.
pub(super) fn lane(process: &str, params: &impl Reaching) -> String {
    match params.session_id() {
        None => process.to_owned(),
        Some(session) => format!("{session}/{process}"),
    }
}

impl Reaching for ReadParams {
    fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }
}

impl Reaching for SignalParams {
    fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }
}

impl Reaching for TerminateParams {
    fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }
}

impl Reaching for SessionCloseParams {
    fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }
}
