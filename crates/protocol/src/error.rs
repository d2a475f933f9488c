//! The error of a response.

use outpost_types::{AccessScope, ErrorKind};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Method, code};

/// The member `error` of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// One of the constants in [`code`].
    pub code: i64,
    /// A message for people. Released clients compare some of these texts, so they are part
    /// of the contract.
    pub message: String,
    /// Details for programs. `None` only for errors of servers that send none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "read_data"
    )]
    pub data: Option<ErrorData>,
}

/// The member `data` of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorData {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The error number of the operating system, if the error is one of a system call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// The path of the member that cannot be decoded, such as `size.rows`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The scope that the request needs, if the client's principal does not have it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "read_known"
    )]
    pub scope: Option<AccessScope>,
}

impl RpcError {
    /// Creates an error of a kind that its code does not imply.
    pub fn new(code: i64, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: Some(ErrorData {
                kind,
                errno: None,
                member: None,
                scope: None,
            }),
        }
    }

    /// Creates an error of the engine or the file system, with the code that its kind implies.
    pub fn of_kind(kind: ErrorKind, errno: Option<i32>, message: impl Into<String>) -> Self {
        let code = match kind {
            ErrorKind::Overloaded => return Self::overloaded(),
            ErrorKind::InvalidParams | ErrorKind::Sandbox => code::INVALID_PARAMS,
            ErrorKind::NotFound | ErrorKind::UnknownHandle => code::NOT_FOUND,
            ErrorKind::SessionAttached => code::SESSION_ATTACHED,
            ErrorKind::Forbidden => code::NOT_PERMITTED,
            ErrorKind::InvalidRequest
            | ErrorKind::UnknownSession
            | ErrorKind::SessionEnded
            | ErrorKind::UnknownProcess
            | ErrorKind::DuplicateProcess
            | ErrorKind::StartCancelled
            | ErrorKind::NotATerminal
            | ErrorKind::PermissionDenied => code::INVALID_REQUEST,
            _ => code::INTERNAL_ERROR,
        };
        Self::new(code, kind, message).with_errno(errno)
    }

    /// The request cannot be served in the present state.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, ErrorKind::InvalidRequest, message)
    }

    /// The method does not exist.
    pub fn method_not_found(method: &str) -> Self {
        let message = format!("exec-server stub does not implement `{method}` yet");
        Self::new(code::METHOD_NOT_FOUND, ErrorKind::MethodNotFound, message)
    }

    /// The method does not exist, in the words of the app-server.
    pub fn unknown_variant(method: &str) -> Self {
        let known = Method::ALL.map(|method| format!("`{}`", method.name()));
        let known = known.join(", ");
        let message =
            format!("Invalid request: unknown variant `{method}`, expected one of {known}");
        Self::new(code::INVALID_REQUEST, ErrorKind::MethodNotFound, message)
    }

    /// The params cannot be decoded, or hold a value that is out of range.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, ErrorKind::InvalidParams, message)
    }

    /// The request was valid and the server or its host failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL_ERROR, ErrorKind::Internal, message)
    }

    /// A limit is reached; the same request may succeed later.
    pub fn overloaded() -> Self {
        Self::limit_reached("Server overloaded; retry later.")
    }

    /// A limit of the client is reached, which the message names.
    pub fn limit_reached(message: impl Into<String>) -> Self {
        Self::new(code::OVERLOADED, ErrorKind::Overloaded, message)
    }

    /// The principal of the client may not do this.
    pub fn not_permitted(message: impl Into<String>) -> Self {
        Self::new(code::NOT_PERMITTED, ErrorKind::Forbidden, message)
    }

    /// The principal of the client does not have the scope that the request needs.
    pub fn out_of_scope(scope: AccessScope) -> Self {
        let message = format!("not permitted: {scope} is required");
        let mut error = Self::not_permitted(message);
        if let Some(data) = &mut error.data {
            data.scope = Some(scope);
        }
        error
    }

    /// Replaces the kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        match &mut self.data {
            Some(data) => data.kind = kind,
            None => self.data = Self::new(self.code, kind, "").data,
        }
        self
    }

    /// Sets the member that cannot be decoded.
    #[must_use]
    pub fn with_member(mut self, member: Option<&str>) -> Self {
        if let Some(data) = &mut self.data {
            data.member = member.map(ToOwned::to_owned);
        }
        self
    }

    /// Sets the error number of the operating system.
    #[must_use]
    pub fn with_errno(mut self, errno: Option<i32>) -> Self {
        if let Some(data) = &mut self.data {
            data.errno = errno;
        }
        self
    }
}

/// Reads a value that a newer server may have more of.
fn read_known<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = serde_json::Value::deserialize(from)?;
    Ok(serde_json::from_value(value).ok())
}

/// Reads `data` of any shape. Other servers may send other data, which is ignored.
fn read_data<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ErrorData>, D::Error> {
    read_known(from)
}
