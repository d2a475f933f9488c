//! Why a message was refused before anybody looked at what it asks for.

use std::fmt;
use std::str::Utf8Error;

/// The most bytes one incoming message may have.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// The most JSON values one incoming message may hold: every object, array and scalar counts as one,
/// the message itself included; keys don't count.
///
/// A byte or two of JSON can unfold into dozens of bytes of memory, so the size alone is no bound.
pub const MAX_JSON_VALUES: usize = 262_144;

/// How much of a repeated key is kept for the message. A key may be megabytes long, the answer and
/// the log line about it should not be.
const KEPT_KEY_CHARS: usize = 64;

/// A message that can't be understood as any of the four shapes.
///
/// Its text is the reason alone, without the transport's fixed prefix.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Malformed {
    kind: MalformedKind,
}

impl Malformed {
    /// What is wrong with the message.
    pub fn kind(&self) -> &MalformedKind {
        &self.kind
    }

    /// For transports that skip an oversized message without ever holding it whole.
    pub fn too_large() -> Self {
        MalformedKind::TooLarge.into()
    }

    /// For transports that had no memory to hold a message, and skipped it.
    pub fn no_memory() -> Self {
        MalformedKind::NoMemory.into()
    }
}

impl From<MalformedKind> for Malformed {
    fn from(kind: MalformedKind) -> Self {
        Self { kind }
    }
}

/// The ways in which a message can be malformed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedKind {
    /// More than [`MAX_MESSAGE_BYTES`].
    #[error("message is larger than {MAX_MESSAGE_BYTES} bytes")]
    TooLarge,
    /// It was skipped because there was no memory to hold it.
    #[error("failed to hold the message: {}", crate::NoMemory)]
    NoMemory,
    /// JSON is UTF-8, and this is not.
    #[error("message is not UTF-8: {0}")]
    NotUtf8(Utf8Error),
    /// No JSON, or nested too deeply.
    #[error("{0}")]
    NotJson(serde_json::Error),
    /// More than [`MAX_JSON_VALUES`].
    #[error("message holds more than {MAX_JSON_VALUES} JSON values")]
    TooManyValues,
    /// One object has the same key twice, and which one counts would be anybody's guess.
    #[error("repeated key {key}")]
    RepeatedKey {
        /// The key, cut short if it is long.
        key: RepeatedKey,
    },
    /// JSON, but not an object.
    #[error("message is not a JSON object")]
    NotAnObject,
    /// `id` is neither a string nor a 64-bit integer.
    #[error("`id` is neither a string nor a 64-bit integer")]
    InvalidId,
    /// `method` is no string.
    #[error("`method` is not a string")]
    InvalidMethod,
    /// A response that doesn't say what it responds to.
    #[error("`result` without an `id`")]
    ResultWithoutId,
    /// None of the members that make a shape.
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
