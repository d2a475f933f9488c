//! Paths on the wire: `file:` URIs.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer};
use serde::{Serialize, Serializer};

use crate::optional_member::parse_str;

const SCHEME: &str = "file:";
const LOCALHOST: &str = "localhost";

/// An absolute path of this host, written as a `file:` URI.
///
/// The path is lexically normal: `.`, `..` and empty segments are resolved when it is made, and it
/// has no slash at its end unless it is the root. Escapes are decoded before that, so `%2e%2e` can't
/// circumvent it. An escaped slash is rejected: it would be part of a name, which no name can contain.
///
/// A path consists of bytes, as on Unix. Bytes that are not UTF-8 are escaped like any other and
/// survive a round trip, so files with names in an old encoding stay accessible.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(
    description = "An absolute path of the server's host, as a `file:` URI.",
    extend("format" = "uri", "pattern" = "^[Ff][Ii][Ll][Ee]:")
)]
pub struct PathUri(PathBuf);

/// The root directory.
impl Default for PathUri {
    fn default() -> Self {
        PathUri(PathBuf::from("/"))
    }
}

/// The reason why a text is not the URI of a path of this host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathUriError {
    /// A native path, or another text without a scheme.
    #[error("invalid URI: relative URL without a base")]
    NoScheme,
    /// A URI of another scheme.
    #[error("unsupported path URI scheme `{0}`")]
    OtherScheme(String),
    /// The URI of a file on another host. File operations return a distinct error code for it.
    #[error("'{0}' is invalid on '{os}'", os = std::env::consts::OS)]
    ForeignHost(String),
    /// The path is missing or doesn't start with a slash.
    #[error("file: URI is not absolute")]
    NotAbsolute,
    /// An unescaped question mark.
    #[error("query parameters are not allowed in path URIs")]
    Query,
    /// An unescaped number sign.
    #[error("fragments are not allowed in path URIs")]
    Fragment,
    /// A percent sign without two hexadecimal digits after it.
    #[error("file: URI has an invalid percent escape")]
    InvalidEscape,
    /// An escaped slash, which would turn one segment into two.
    #[error("file: URI has an escaped slash")]
    EscapedSlash,
    /// A NUL byte, escaped or not, which no path may contain.
    #[error("'{0}' is invalid on '{os}'", os = std::env::consts::OS)]
    Nul(String),
}

impl PathUri {
    /// Parses a `file:` URI.
    ///
    /// # Errors
    /// When the text is no URI of a path of this host.
    pub fn parse(uri: &str) -> Result<Self, PathUriError> {
        let rest = match uri.split_at_checked(SCHEME.len()) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(SCHEME) => rest,
            _ => return Err(without_file_scheme(uri)),
        };
        let path = match rest.strip_prefix("//") {
            None => rest,
            Some(rest) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                let (host, path) = rest.split_at(end);
                if !host.is_empty() && !host.eq_ignore_ascii_case(LOCALHOST) {
                    return Err(PathUriError::ForeignHost(uri.to_owned()));
                }
                path
            }
        };
        match path.find(['?', '#']).map(|at| path.as_bytes()[at]) {
            Some(b'?') => return Err(PathUriError::Query),
            Some(_) => return Err(PathUriError::Fragment),
            None => {}
        }
        if !path.starts_with('/') {
            return Err(PathUriError::NotAbsolute);
        }
        let bytes = unescape(path.as_bytes())?;
        if bytes.contains(&0) {
            return Err(PathUriError::Nul(uri.replace('\0', "%00")));
        }
        Ok(Self(normalize(&bytes)))
    }

    /// The URI of a native path, which should be absolute. A relative path is resolved against the
    /// root.
    #[must_use]
    pub fn from_path(path: &Path) -> Self {
        Self(normalize(path.as_os_str().as_bytes()))
    }

    /// The native path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The native path, owned.
    #[must_use]
    pub fn into_path(self) -> PathBuf {
        self.0
    }
}

/// The error for a text that doesn't start with `file:`.
fn without_file_scheme(uri: &str) -> PathUriError {
    let is_scheme = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    match uri.split_once(':') {
        Some((scheme, _)) if is_scheme(scheme) => {
            PathUriError::OtherScheme(scheme.to_ascii_lowercase())
        }
        _ => PathUriError::NoScheme,
    }
}

/// Resolves percent escapes.
fn unescape(text: &[u8]) -> Result<Vec<u8>, PathUriError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            rest.next()
                .and_then(|byte| char::from(byte).to_digit(16))
                .ok_or(PathUriError::InvalidEscape)
        };
        match (digit()? << 4 | digit()?) as u8 {
            b'/' => return Err(PathUriError::EscapedSlash),
            byte => bytes.push(byte),
        }
    }
    Ok(bytes)
}

/// Resolves `.`, `..` and empty segments lexically. `..` at the root stays there, as in the kernel.
fn normalize(path: &[u8]) -> PathBuf {
    let mut normal = Vec::with_capacity(path.len() + 1);
    for segment in path.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                let parent = normal.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                normal.truncate(parent);
            }
            _ => {
                normal.push(b'/');
                normal.extend_from_slice(segment);
            }
        }
    }
    if normal.is_empty() {
        normal.push(b'/');
    }
    PathBuf::from(OsString::from_vec(normal))
}

impl fmt::Display for PathUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("file://")?;
        let mut rest = self.0.as_os_str().as_bytes();
        while !rest.is_empty() {
            let plain = rest.iter().take_while(|byte| is_plain(**byte)).count();
            let (run, escaped) = rest.split_at(plain);
            // Plain bytes are ASCII, so the conversion is lossless.
            f.write_str(&String::from_utf8_lossy(run))?;
            let Some((byte, after)) = escaped.split_first() else {
                break;
            };
            write!(f, "%{byte:02X}")?;
            rest = after;
        }
        Ok(())
    }
}

/// Whether a byte is written without an escape: the unreserved characters of RFC 3986, and slashes.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/')
}

impl Serialize for PathUri {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PathUri {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse_str(deserializer, "a string", Self::parse)
    }
}

/// Serializes a native path as its URI, for `#[serde(with = "as_uri")]`.
pub(crate) mod as_uri {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::PathUri;

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        PathUri::from_path(path).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D>(deserializer: D) -> Result<PathBuf, D::Error>
    where
        D: Deserializer<'de>,
    {
        PathUri::deserialize(deserializer).map(PathUri::into_path)
    }
}
