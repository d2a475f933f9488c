//! Native paths, for methods without URIs.

use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

/// An absolute path of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativePath(PathBuf);

impl NativePath {
    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The path, owned.
    pub fn into_path(self) -> PathBuf {
        self.0
    }
}

impl Serialize for NativePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NativePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = PathBuf::deserialize(deserializer)?;
        if !path.is_absolute() {
            return Err(D::Error::custom("path is not absolute"));
        }
        Ok(Self(path))
    }
}
