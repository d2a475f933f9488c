//! `fs/watch`, `fs/unwatch` and `fs/watchMissing`: changes of files and folders.

use std::path::{Path, PathBuf};

use outpost_types::optional_member::{or_default, parse_str};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{AbsolutePath, PathUri, PathUriError, SandboxParams};

/// Params of `fs/watch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWatchParams {
    /// The id of the watch, chosen by the client. It is unique on the connection.
    pub watch_id: String,
    /// A file, a directory, or a path that does not exist yet.
    pub path: PathUri,
    /// Watches everything below a directory, not only its entries.
    #[serde(default, deserialize_with = "or_default")]
    pub recursive: bool,
    /// The sandbox of the watch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Result of `fs/watch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsWatchResult {
    /// The watched path, normalized. Symbolic links are not resolved.
    pub path: PathUri,
}

/// Params of `fs/watch` on a connection of an app-server client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppWatchParams {
    /// The id of the watch, chosen by the client. It is unique on the connection.
    pub watch_id: String,
    /// A file, a directory, or a path that does not exist yet.
    pub path: AbsolutePath,
}

/// Result of `fs/watch` on a connection of an app-server client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppWatchResult {
    /// The watched path, normalized. Symbolic links are not resolved.
    pub path: String,
}

/// Params of `fs/unwatch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsUnwatchParams {
    /// The watch. An unknown id is accepted.
    pub watch_id: String,
}

/// Params of `fs/changed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsChanged {
    /// The watch.
    pub watch_id: String,
    /// The changed paths, sorted.
    pub changed_paths: Vec<PathUri>,
    /// Whether other changes may have been lost: the client should look for itself. Absent if not.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub missed: bool,
    /// Directories below the path that cannot be read, sorted: changes in them are missed until they
    /// can be. Absent if there are none.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub unreadable: Vec<PathUri>,
}

/// Params of `fs/changed` on a connection of an app-server client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppChanged {
    /// The watch.
    pub watch_id: String,
    /// The changed paths, sorted.
    pub changed_paths: Vec<String>,
}

/// Params of `fs/watchMissing`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWatchMissingParams {
    /// The id of the watch, higher than all earlier ones of the connection.
    pub watch_id: u64,
    /// Paths that do not exist.
    pub missing: Vec<AnyPathUri>,
    /// A path that exists, whose change is reported too.
    pub present: Option<AnyPathUri>,
}

/// Result of `fs/watchMissing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsWatchMissingResult {
    /// Whether the paths are watched.
    pub watching: bool,
}

/// Params of `fs/missingChanged`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsMissingChanged {
    /// The watch, which has ended.
    pub watch_id: u64,
}

/// The `file:` URI of a path, which may belong to another host or another operating system.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "PathUri")]
pub struct AnyPathUri(Option<PathUri>);

impl AnyPathUri {
    /// The native path; none if this host cannot have it.
    #[must_use]
    pub fn into_path(self) -> Option<PathBuf> {
        self.0.map(PathUri::into_path)
    }
}

impl From<&Path> for AnyPathUri {
    fn from(path: &Path) -> Self {
        AnyPathUri(Some(PathUri::from_path(path)))
    }
}

impl Serialize for AnyPathUri {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AnyPathUri {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse_str(deserializer, "a string", |uri| match PathUri::parse(uri) {
            Ok(path) if has_drive(path.as_path()) => Ok(AnyPathUri(None)),
            Ok(path) => Ok(AnyPathUri(Some(path))),
            Err(PathUriError::ForeignHost(_)) => Ok(AnyPathUri(None)),
            Err(error) => Err(error),
        })
    }
}

/// Whether a path is one of Windows: its first name is a drive.
fn has_drive(path: &Path) -> bool {
    let first = path.iter().nth(1).and_then(|name| name.to_str());
    let bytes = first.unwrap_or_default().as_bytes();
    matches!(bytes, [letter, b':'] if letter.is_ascii_alphabetic())
}
