//! The file of named tokens (`--tokens-file`): their names and hashes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use outpost_protocol::AccessScope;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::TokenHash;

/// The named tokens of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFile {
    /// The tokens, in the order in which they were created.
    #[serde(default)]
    pub tokens: Vec<NamedToken>,
}

/// A token of a principal. The token itself is not stored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NamedToken {
    /// The name of its principal.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: TokenHash,
    /// If present, narrows the scopes of the principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<AccessScope>>,
    /// When it was created, in seconds since 1970.
    pub created: u64,
    /// When it expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

/// Error of parsing a token file.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file is not text.
    #[error("it is not UTF-8 text")]
    Encoding,
    /// The file is not TOML of the expected form. The line is not shown: it may be a secret in the wrong
    /// file.
    #[error("line {line}: {message}")]
    Toml {
        /// The line, from 1.
        line: usize,
        /// The reason.
        message: String,
    },
    /// Two tokens have one name.
    #[error("two tokens are named {0:?}")]
    DuplicateName(String),
}

/// Error of adding a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddTokenError {
    /// The name is empty or cannot be printed.
    #[error("the name of a token must not be empty or contain control characters")]
    InvalidName,
    /// Another token has the name.
    #[error("a token named {0:?} exists; revoke it first, or choose another name")]
    NameInUse(String),
    /// The kernel gave no random bytes.
    #[error("the kernel gave no random bytes")]
    NoRandomness,
}

/// The beginning of every token, by which scanners can recognise a leaked token.
const TOKEN_PREFIX: &str = "outpost_";

impl TokenFile {
    /// Parses the text of a token file.
    pub fn parse(bytes: &[u8]) -> Result<Self, TokenFileError> {
        let text = std::str::from_utf8(bytes).map_err(|_| TokenFileError::Encoding)?;
        let file: TokenFile = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            TokenFileError::Toml {
                line: 1 + bytes[..start.min(bytes.len())]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count(),
                message: error.message().to_owned(),
            }
        })?;
        let mut names: Vec<_> = file.tokens.iter().map(|token| &token.name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(TokenFileError::DuplicateName(pair[0].clone())),
            None => Ok(file),
        }
    }

    /// Adds a token, in place of an expired one with its name. Returns it; only its hash is stored.
    pub fn add(
        &mut self,
        name: &str,
        scopes: Option<Vec<AccessScope>>,
        now: SystemTime,
        expires: Option<SystemTime>,
    ) -> Result<String, AddTokenError> {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(AddTokenError::InvalidName);
        }
        let is_same = |token: &NamedToken| token.name == name;
        if self
            .tokens
            .iter()
            .any(|token| is_same(token) && !token.has_expired(now))
        {
            return Err(AddTokenError::NameInUse(name.to_owned()));
        }
        let mut random = [0; 32];
        let filled = SystemRandom::new().fill(&mut random);
        filled.map_err(|_| AddTokenError::NoRandomness)?;
        let token = format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
        let seconds = |time: SystemTime| {
            time.duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs()
        };
        self.tokens.retain(|token| !is_same(token));
        self.tokens.push(NamedToken {
            name: name.to_owned(),
            sha256: TokenHash::of(&token),
            scopes,
            created: seconds(now),
            expires: expires.map(seconds),
        });
        Ok(token)
    }

    /// Finds the token with this hash that has not expired. Compares with all of them, in constant time.
    pub(super) fn find(&self, hash: &TokenHash, now: SystemTime) -> Option<&NamedToken> {
        let mut found = None;
        for token in &self.tokens {
            if bool::from(token.sha256.ct_eq(hash)) {
                found = Some(token);
            }
        }
        found.filter(|token| !token.has_expired(now))
    }
}

impl NamedToken {
    /// When it expires.
    #[must_use]
    pub fn expires_at(&self) -> Option<SystemTime> {
        let since = Duration::from_secs(self.expires?);
        // A time that cannot be represented never comes.
        UNIX_EPOCH.checked_add(since)
    }

    /// Whether it has expired.
    #[must_use]
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.expires_at().is_some_and(|expires| expires <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_and_unknown_tokens_are_not_found() {
        let hash = TokenHash::of("secret");
        let text = format!(
            "[[tokens]]\nname = \"ci\"\nsha256 = \"{hash}\"\nscopes = [\"exec\"]\ncreated = 5\nexpires = 10\n"
        );
        let file = TokenFile::parse(text.as_bytes()).unwrap();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(file.find(&hash, at(9)).unwrap().name, "ci");
        assert_eq!(file.find(&hash, at(10)), None);
        assert_eq!(file.find(&TokenHash::of("other"), at(9)), None);
    }

    #[test]
    fn added_token_is_found_by_its_hash() {
        let mut file = TokenFile::default();
        let now = SystemTime::now();
        let token = file.add("ci", None, now, None).unwrap();
        let text = toml::to_string(&file).unwrap();
        assert!(!text.contains(&token));
        let file_again = TokenFile::parse(text.as_bytes()).unwrap();
        assert_eq!(file_again, file);
        assert!(file.find(&TokenHash::of(&token), now).is_some());
        let again = file.add("ci", None, now, Some(now)).unwrap_err();
        assert_eq!(again, AddTokenError::NameInUse("ci".to_owned()));
        let invalid = file.add("", None, now, None).unwrap_err();
        assert_eq!(invalid, AddTokenError::InvalidName);
    }

    #[test]
    fn new_token_replaces_an_expired_one() {
        let mut file = TokenFile::default();
        let now = SystemTime::now();
        let old = file.add("ci", None, now, Some(now)).unwrap();
        let new = file.add("ci", None, now, None).unwrap();
        assert_eq!(file.tokens.len(), 1);
        assert!(file.find(&TokenHash::of(&old), UNIX_EPOCH).is_none());
        assert!(file.find(&TokenHash::of(&new), now).is_some());
    }

    #[test]
    fn duplicate_names_and_unknown_members_are_errors() {
        let hash = TokenHash::of("x");
        let one = format!("[[tokens]]\nname = \"a\"\nsha256 = \"{hash}\"\ncreated = 1\n");
        assert!(TokenFile::parse(format!("{one}{one}").as_bytes()).is_err());
        assert!(TokenFile::parse(format!("{one}secret = \"x\"\n").as_bytes()).is_err());
        assert!(TokenFile::parse(b"").unwrap().tokens.is_empty());
    }

    #[test]
    fn error_names_the_line_and_not_its_text() {
        for text in [
            "# tokens\nhunter2",
            "# tokens\nx = \"hunter2",
            "# tokens\nsha256 = hunter2",
        ] {
            let error = TokenFile::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(
                error.starts_with("line 2: ") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }
}
