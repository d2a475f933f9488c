//! A request before its params are parsed, and the errors of invalid params.

use outpost_protocol::{
    Family, InvalidParams, MAX_JSON_VALUES, MemberNames, Method, PathUriError, RpcError,
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
    pub(super) members: MemberNames<'a>,
    pub(super) reply: Reply,
}

impl<'a> Request<'a> {
    /// Rejects the request if its params have misspelt members, or unknown ones if `strict`.
    pub(super) fn check_members(self, dialect: Option<&str>, strict: bool) -> Option<Self> {
        let method = self.method;
        let checked = self.members.check(method.name(), dialect, strict);
        let checked = checked.map_err(|error| invalid_params(method, &error));
        let ((), reply) = self.reply.accept(checked)?;
        Some(Request { reply, ..self })
    }

    /// Parses the params. Rejects the request if they are invalid.
    pub(super) fn parse<T: Deserialize<'a>>(self) -> Option<(T, Reply)> {
        let method = self.method;
        let parsed = parse_params(self.params).map_err(|error| invalid_params(method, &error));
        self.reply.accept(parsed)
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

    pub(super) fn reject_method(self) -> Option<()> {
        let error = RpcError::method_not_found(self.method.name());
        self.reply.reject(error);
        None
    }
}

/// Returns the error for invalid params. The app-server has its own, and so has a file on another
/// host.
pub(super) fn invalid_params(method: Method, error: &InvalidParams) -> RpcError {
    let text = truncated(&error.to_string());
    match method.family() {
        Family::App => RpcError::invalid_request(format!("Invalid request: {text}")),
        Family::Filesystem if error.is_foreign_path() => {
            RpcError::invalid_request(PathUriError::ForeignHost.to_string())
        }
        _ => RpcError::invalid_params(format!("invalid params: {text}")),
    }
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
