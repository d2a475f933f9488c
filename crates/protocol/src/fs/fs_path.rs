//! Paths of file operations.

use std::fmt;
use std::path::PathBuf;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

use crate::{PathUri, PathUriError};

/// A [`PathUri`], or the URI of a file on another host. File operations parse such a URI and reject
/// it with a distinct error code; other methods don't parse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FsPath {
    /// A path of this host.
    Here(PathUri),
    /// A file on another host, as it was sent.
    Elsewhere(Box<str>),
}

impl FsPath {
    /// The native path, if it is on this host.
    pub fn into_path(self) -> Result<PathBuf, PathUriError> {
        match self {
            Self::Here(uri) => Ok(uri.into_path()),
            Self::Elsewhere(_) => Err(PathUriError::ForeignHost),
        }
    }
}

impl From<PathUri> for FsPath {
    fn from(uri: PathUri) -> Self {
        Self::Here(uri)
    }
}

impl Serialize for FsPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Here(uri) => uri.serialize(serializer),
            Self::Elsewhere(uri) => serializer.serialize_str(uri),
        }
    }
}

impl<'de> Deserialize<'de> for FsPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(FsPathVisitor)
    }
}

struct FsPathVisitor;

impl Visitor<'_> for FsPathVisitor {
    type Value = FsPath;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file: URI")
    }

    fn visit_str<E: de::Error>(self, uri: &str) -> Result<FsPath, E> {
        match PathUri::parse(uri) {
            Ok(uri) => Ok(FsPath::Here(uri)),
            Err(PathUriError::ForeignHost) => Ok(FsPath::Elsewhere(uri.into())),
            Err(error) => Err(E::custom(error)),
        }
    }
}
