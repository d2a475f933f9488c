//! Messages that are rejected before their method is looked at.

use std::fmt;
use std::str::Utf8Error;

/// The limit of an incoming message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// The limit of JSON values in an incoming message. Each object, array and scalar counts, including
/// the message itself; keys don't.
///
/// Two bytes of JSON can take dozens of bytes of memory, so the size alone is no bound.
pub const MAX_JSON_VALUES: usize = 262_144;

/// The limit of a repeated key in the error text. The key itself may be megabytes long.
const KEPT_KEY_CHARS: usize = 64;

/// A message that is neither a request, a notification nor a response.
///
/// The text is the reason, without the transport's fixed prefix.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Malformed {
    kind: MalformedKind,
}

impl Malformed {
    /// The reason.
    pub fn kind(&self) -> &MalformedKind {
        &self.kind
    }

    /// The error for a transport that skipped an oversized message.
    pub fn too_large() -> Self {
        MalformedKind::TooLarge.into()
    }

    /// The error for a transport that had no memory for a message and skipped it.
    pub fn no_memory() -> Self {
        MalformedKind::NoMemory.into()
    }
}

impl From<MalformedKind> for Malformed {
    fn from(kind: MalformedKind) -> Self {
        Self { kind }
    }
}

/// The reason why a message is malformed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedKind {
    /// More than [`MAX_MESSAGE_BYTES`].
    #[error("message is larger than {MAX_MESSAGE_BYTES} bytes")]
    TooLarge,
    /// The message was skipped for lack of memory.
    #[error("failed to hold the message: {}", crate::NoMemory)]
    NoMemory,
    /// The message is not UTF-8.
    #[error("message is not UTF-8: {0}")]
    NotUtf8(Utf8Error),
    /// The message is not JSON, or nested too deeply.
    #[error("{0}")]
    NotJson(serde_json::Error),
    /// More than [`MAX_JSON_VALUES`].
    #[error("message holds more than {MAX_JSON_VALUES} JSON values")]
    TooManyValues,
    /// An object has a key twice, which is ambiguous.
    #[error("repeated key {key}")]
    RepeatedKey {
        /// The key, shortened if it is long.
        key: RepeatedKey,
    },
    /// The message is not an object.
    #[error("message is not a JSON object")]
    NotAnObject,
    /// `id` is neither a string nor a 64-bit integer.
    #[error("`id` is neither a string nor a 64-bit integer")]
    InvalidId,
    /// `method` is not a string.
    #[error("`method` is not a string")]
    InvalidMethod,
    /// A response without an id.
    #[error("`result` without an `id`")]
    ResultWithoutId,
    /// None of the members that identify a kind of message.
    #[error("message has no `method`, `result` or `error`")]
    NoShape,
}

/// A key that occurred twice, shortened and escaped for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedKey(Box<str>);

impl RepeatedKey {
    pub(crate) fn new(key: &str) -> Self {
        let kept = match key.char_indices().nth(KEPT_KEY_CHARS) {
            Some((end, _)) => format!("{}…", &key[..end]),
            None => key.to_owned(),
        };
        Self(kept.into())
    }
}

impl fmt::Display for RepeatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.escape_debug())
    }
}
