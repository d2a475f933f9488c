//! A request before its params are parsed, and the errors of invalid params.

use outpost_protocol::{
    Family, InvalidParams, MAX_JSON_VALUES, Method, PresentMembers, RpcError, parse_no_params,
    parse_params,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Reply;

/// Approximate memory of a value among the parsed params.
const VALUE_BYTES: usize = 64;

/// Limit for client text that is echoed in an error message, in characters.
const MAX_ECHOED_CHARS: usize = 300;

/// A request whose params are not yet parsed.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) params: Option<&'a RawValue>,
    pub(super) members: PresentMembers<'a>,
    pub(super) reply: Reply,
    /// The request is an app-server method from an app-server client.
    pub(super) is_app: bool,
}

impl<'a> Request<'a> {
    /// Rejects the request if its params have misspelt members, or unknown ones if `strict`.
    pub(super) fn check_members(self, dialect: Option<&str>, strict: bool) -> Option<Self> {
        let checked = self.members.check(self.method.name(), dialect, strict);
        let checked = checked.map_err(|error| self.invalid(&error));
        let ((), reply) = self.reply.accept(checked)?;
        Some(Request { reply, ..self })
    }

    /// Parses the params. Rejects the request if they are invalid.
    pub(super) fn parse<T: Deserialize<'a>>(self) -> Option<(T, Reply)> {
        let parsed = self.check_presence().and_then(|()| {
            let parsed = parse_params(self.params);
            parsed.map_err(|error| self.invalid(&error))
        });
        self.reply.accept(parsed)
    }

    /// Checks that there are params, as the app-server does.
    pub(super) fn check_presence(&self) -> Result<(), RpcError> {
        match self.params {
            None if self.is_app => Err(RpcError::invalid_request(
                "Invalid request: missing field `params`",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the error for invalid params.
    pub(super) fn invalid(&self, error: &InvalidParams) -> RpcError {
        invalid_params(self.method, self.is_app, error)
    }

    /// Serves the request and responds at once. Returns `None` if the params are invalid, but not if
    /// `serve` fails.
    pub(super) fn respond_now<T: Deserialize<'a>, R: Serialize>(
        self,
        serve: impl FnOnce(T) -> Result<R, RpcError>,
    ) -> Option<()> {
        let (params, reply) = self.parse()?;
        reply.send(serve(params));
        Some(())
    }

    /// Serves a request without params and responds at once.
    pub(super) fn respond_without_params<R: Serialize>(self, result: R) -> Option<()> {
        let parsed = parse_no_params(self.params);
        let parsed = parsed.map_err(|error| self.invalid(&error));
        let ((), reply) = self.reply.accept(parsed)?;
        reply.send(Ok(result));
        Some(())
    }

    pub(super) fn reject_method(self) -> Option<()> {
        let error = RpcError::method_not_found(self.method.name());
        self.reply.reject(error);
        None
    }
}

/// Returns the error for invalid params: the text of the decoder, which released clients compare. The
/// app-server has its own, and so has a file on another host.
pub(super) fn invalid_params(method: Method, is_app: bool, error: &InvalidParams) -> RpcError {
    let text = truncated(&error.to_string());
    let rejection = match method.family() {
        family if is_app || family == Family::App => {
            let text = truncated(error.app_text());
            RpcError::invalid_request(format!("Invalid request: {text}"))
        }
        Family::Filesystem if error.is_foreign_path() => RpcError::invalid_request(text),
        _ => RpcError::invalid_params(text),
    };
    rejection.with_member(error.member().map(truncated).as_deref())
}

/// Returns the approximate memory of the params of a request: a quarter of base64 is not
/// stored, and each value has an overhead.
pub(super) fn params_cost(message: &[u8]) -> usize {
    let separators = message.iter().filter(|byte| **byte == b',').count();
    message.len() / 4 * 3 + separators.min(MAX_JSON_VALUES) * VALUE_BYTES
}

/// Truncates text that may echo megabytes of the request.
pub(super) fn truncated(text: &str) -> String {
    text.chars().take(MAX_ECHOED_CHARS).collect()
}
