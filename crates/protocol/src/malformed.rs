//! Messages that are rejected before their method is looked at.

use std::str::Utf8Error;

/// The limit of an incoming message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// The limit of a message before the handshake, in bytes.
pub const MAX_HANDSHAKE_BYTES: usize = 64 * 1024;

/// The limit of JSON values in an incoming message. Each object, array and scalar counts, including
/// the message itself; keys don't.
///
/// Two bytes of JSON can take dozens of bytes of memory, so the size alone is no bound.
pub const MAX_JSON_VALUES: usize = 262_144;

/// The limit of a repeated key in the error text. The key itself may be megabytes long.
const KEPT_KEY_CHARS: usize = 64;

/// The reason why a message is neither a request, a notification nor a response.
///
/// The text is the reason, without the transport's fixed prefix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// More than [`MAX_MESSAGE_BYTES`].
    #[error("message is larger than {MAX_MESSAGE_BYTES} bytes")]
    TooLarge,
    /// More than [`MAX_HANDSHAKE_BYTES`] before the handshake.
    #[error("message before initialize is larger than {MAX_HANDSHAKE_BYTES} bytes")]
    TooLargeForHandshake,
    /// The message was skipped for lack of memory.
    #[error("cannot allocate memory for the message: {}", crate::NoMemory)]
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
    #[error("repeated key `{key}`")]
    RepeatedKey {
        /// The key, escaped for display and shortened if it is long.
        key: String,
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

impl Malformed {
    /// Whether the message is valid JSON-RPC, but beyond a limit or ambiguous.
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::TooLarge
                | Self::TooLargeForHandshake
                | Self::NoMemory
                | Self::TooManyValues
                | Self::RepeatedKey { .. }
        )
    }

    pub(crate) fn repeated_key(key: &str) -> Self {
        let mut kept: String = key.chars().take(KEPT_KEY_CHARS).collect();
        if kept.len() < key.len() {
            kept.push('…');
        }
        let key = kept.escape_debug().to_string();
        Self::RepeatedKey { key }
    }
}
