//! Raw bytes as JSON strings: standard alphabet, padding required.
//!
//! All uses of the base64 library are here.

use std::collections::TryReserveError;
use std::convert::Infallible;
use std::fmt;

use base64_simd::{AsOut as _, STANDARD};
use outpost_types::optional_member::parse_str;
use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer};
use serde::{Serialize, Serializer};

use crate::NoMemory;

/// Bytes that one step of [`AsText`] encodes. A multiple of 3, so that padding occurs only at the
/// end.
const STEP_BYTES: usize = 3 * 1024;
const STEP_TEXT: usize = STEP_BYTES / 3 * 4;

/// Appends the base64 form of `bytes`.
pub fn encode_into(out: &mut Vec<u8>, bytes: &[u8]) {
    // The library reserves exactly what it needs, so that a growing buffer would be copied with
    // every chunk.
    out.reserve(encoded_len(bytes.len()));
    STANDARD.encode_append(bytes, out);
}

/// The length of the base64 form of `len` bytes.
pub const fn encoded_len(len: usize) -> usize {
    len.div_ceil(3) * 4
}

/// Decodes a base64 text.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, InvalidBase64> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(text.len() / 4 * 3 + 3)?;
    STANDARD
        .decode_append(text, &mut bytes)
        .map_err(|_| InvalidBase64::diagnose(text))?;
    Ok(bytes)
}

/// The reason why a text can't be decoded. The texts are those of released servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBase64 {
    /// A byte that is not in the alphabet, or padding before the end.
    #[error("Invalid symbol {byte}, offset {offset}.")]
    Symbol {
        /// Its offset.
        offset: usize,
        /// The byte.
        byte: u8,
    },
    /// The last symbol is alone, so that it belongs to no byte.
    #[error("Invalid input length: {length}")]
    Length {
        /// The length of the text.
        length: usize,
    },
    /// Padding is missing.
    #[error("Invalid padding")]
    Padding,
    /// The last symbol has bits that belong to no byte.
    #[error("Invalid last symbol {byte}, offset {offset}.")]
    StrayBits {
        /// Its offset.
        offset: usize,
        /// The byte.
        byte: u8,
    },
    /// The bytes could not be allocated.
    #[error("failed to decode base64: {}", NoMemory)]
    NoMemory,
}

impl From<TryReserveError> for InvalidBase64 {
    fn from(_: TryReserveError) -> Self {
        Self::NoMemory
    }
}

impl InvalidBase64 {
    /// Finds the reason why a text was rejected, which the fast decoder doesn't report.
    fn diagnose(text: &[u8]) -> Self {
        let length = text.len();
        let padding = text
            .iter()
            .rev()
            .take(2)
            .take_while(|byte| **byte == b'=')
            .count();
        let symbols = &text[..length - padding];
        let stranger = symbols
            .iter()
            .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')));
        match stranger {
            Some(offset) => Self::Symbol {
                offset,
                byte: text[offset],
            },
            None if length % 4 == 1 => Self::Length { length },
            None if !length.is_multiple_of(4) => Self::Padding,
            None => match symbols.iter().copied().enumerate().next_back() {
                Some((offset, byte)) => Self::StrayBits { offset, byte },
                None => Self::Padding,
            },
        }
    }
}

/// The expectation in the error for another type.
const EXPECTED: &str = "a string";

/// Bytes that are a base64 string in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(
    rename = "Base64",
    description = "Bytes: standard alphabet, with padding.",
    extend("contentEncoding" = "base64")
)]
pub struct Base64Bytes(#[schemars(with = "String")] pub Vec<u8>);

impl AsRef<[u8]> for Base64Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Base64Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Serialize for Base64Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        as_text::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        as_text::deserialize(deserializer)
    }
}

/// Bytes that are a base64 string in JSON, still encoded. The server rejects an invalid text with
/// the message of the method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base64Text(pub Result<Vec<u8>, InvalidBase64>);

impl From<Vec<u8>> for Base64Text {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Ok(bytes))
    }
}

impl Serialize for Base64Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(bytes) => as_text::serialize(bytes, serializer),
            Err(error) => Err(serde::ser::Error::custom(error)),
        }
    }
}

impl<'de> Deserialize<'de> for Base64Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let decode = |text: &str| Ok::<_, Infallible>(Self(decode(text.as_bytes())));
        parse_str(deserializer, EXPECTED, decode)
    }
}

/// Serializes any type that holds bytes, for `#[serde(with = "as_text")]`.
pub(crate) mod as_text {
    use super::{AsText, Deserializer, EXPECTED, Serializer, decode, parse_str};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &impl AsRef<[u8]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&AsText(bytes.as_ref()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, B: From<Vec<u8>>>(
        deserializer: D,
    ) -> Result<B, D::Error> {
        parse_str(deserializer, EXPECTED, |text| {
            decode(text.as_bytes()).map(B::from)
        })
    }
}

/// Displays bytes as base64, in steps on the stack instead of a copy of the whole text.
struct AsText<'a>(&'a [u8]);

impl fmt::Display for AsText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; STEP_TEXT];
        for step in self.0.chunks(STEP_BYTES) {
            f.write_str(STANDARD.encode_as_str(step, buffer.as_mut_slice().as_out()))?;
        }
        Ok(())
    }
}
