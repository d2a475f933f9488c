//! SHA-256 hashes of bearer tokens.

use std::{fmt, str::FromStr};

use ring::digest;
use serde::{Deserialize, Serialize};
use subtle::{Choice, ConstantTimeEq};

/// SHA-256 of a bearer token. Comparing hashes in constant time reveals nothing about a token.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenHash([u8; 32]);

/// Error of parsing a [`TokenHash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the 64 hexadecimal digits of a SHA-256")]
pub struct ParseTokenHashError;

impl TokenHash {
    /// Hashes a token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        let digest = digest::digest(&digest::SHA256, token.as_bytes());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        TokenHash(bytes)
    }
}

impl ConstantTimeEq for TokenHash {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl FromStr for TokenHash {
    type Err = ParseTokenHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(ParseTokenHashError);
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(ParseTokenHashError);
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
        }
        Ok(TokenHash(bytes))
    }
}

impl TryFrom<String> for TokenHash {
    type Error = ParseTokenHashError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<TokenHash> for String {
    fn from(hash: TokenHash) -> Self {
        hash.to_string()
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_parse_and_print() {
        // The example of FIPS 180-2, appendix B.1.
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(TokenHash::of("abc").to_string(), hex);
        assert_eq!(hex.to_uppercase().parse(), Ok(TokenHash::of("abc")));
        for text in [
            "",
            "ba",
            &hex[1..],
            &format!("{hex}0"),
            &hex.replace('b', "g"),
            &"é".repeat(32),
        ] {
            assert_eq!(
                text.parse::<TokenHash>(),
                Err(ParseTokenHashError),
                "{text}"
            );
        }
    }
}
