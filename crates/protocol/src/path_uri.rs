//! The only form in which a path is on the wire.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

const SCHEME: &str = "file:";
const LOCALHOST: &str = "localhost";

/// An absolute path of this host, written as a `file:` URI.
///
/// The path is lexically normal: `.`, `..` and empty segments are resolved when it is made, and it
/// has no slash at its end unless it is the root. Escapes are decoded before that, so `%2e%2e` and
/// `%2f` get nobody around it.
///
/// A path is bytes here, as on Unix. Bytes that are not UTF-8 are escaped like any other and come
/// back unchanged, so that a file with a name in an old encoding is not out of reach.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathUri(PathBuf);

/// Why a text is not the URI of a path of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathUriError {
    /// A native path, or a URI of another scheme.
    #[error("path is not a file: URI")]
    NotFileUri,
    /// The URI of a file on some other host. File operations answer this with a code of its own.
    #[error("file: URI names another host")]
    ForeignHost,
    /// No path, or one that doesn't start with a slash.
    #[error("file: URI is not absolute")]
    NotAbsolute,
    /// A question mark that is not escaped.
    #[error("file: URI has a query")]
    Query,
    /// A number sign that is not escaped.
    #[error("file: URI has a fragment")]
    Fragment,
    /// A percent sign without two hexadecimal digits after it.
    #[error("file: URI has an invalid percent escape")]
    InvalidEscape,
    /// A NUL byte, escaped or not. No path of the OS can have one.
    #[error("file: URI has a NUL byte")]
    Nul,
}

impl PathUri {
    /// Reads a `file:` URI.
    pub fn parse(uri: &str) -> Result<Self, PathUriError> {
        let rest = match uri.split_at_checked(SCHEME.len()) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(SCHEME) => rest,
            _ => return Err(PathUriError::NotFileUri),
        };
        let path = match rest.strip_prefix("//") {
            None => rest,
            Some(rest) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                let (host, path) = rest.split_at(end);
                if !host.is_empty() && !host.eq_ignore_ascii_case(LOCALHOST) {
                    return Err(PathUriError::ForeignHost);
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
            return Err(PathUriError::Nul);
        }
        Ok(Self(normalize(&bytes)))
    }

    /// The URI of a native path, which should be absolute: a relative one is taken from the root,
    /// since there is no other directory to take it from here.
    pub fn from_path(path: &Path) -> Self {
        Self(normalize(path.as_os_str().as_bytes()))
    }

    /// The native path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The native path, owned.
    pub fn into_path(self) -> PathBuf {
        self.0
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
        bytes.push((digit()? << 4 | digit()?) as u8);
    }
    Ok(bytes)
}

/// Resolves `.`, `..` and empty segments without asking the file system. `..` at the root stays
/// there, as it does in the kernel.
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

impl FromStr for PathUri {
    type Err = PathUriError;

    fn from_str(uri: &str) -> Result<Self, PathUriError> {
        Self::parse(uri)
    }
}

impl fmt::Display for PathUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("file://")?;
        let mut rest = self.0.as_os_str().as_bytes();
        while !rest.is_empty() {
            let plain = rest.iter().take_while(|byte| is_plain(**byte)).count();
            let (run, escaped) = rest.split_at(plain);
            // Plain bytes are ASCII, so nothing is lost here.
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

/// Whether a byte stands for itself in a URI we write: the unreserved ones of RFC 3986, and slashes.
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
        deserializer.deserialize_str(PathUriVisitor)
    }
}

struct PathUriVisitor;

impl Visitor<'_> for PathUriVisitor {
    type Value = PathUri;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file: URI")
    }

    fn visit_str<E: de::Error>(self, uri: &str) -> Result<PathUri, E> {
        PathUri::parse(uri).map_err(E::custom)
    }
}
