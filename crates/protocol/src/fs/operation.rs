//! The methods that are file operations: their params and results, converted from and to
//! [`FileOp`] and [`FileReply`].

use std::path::Path;

use outpost_types::members::{default_true, is_true, object, or_default, or_true};
use outpost_types::{DirectoryEntry, FileOp, FileReply, Symlinks, WalkOptions};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::FsPath;
use crate::{Empty, InvalidParams, Method, PathUri, PathUriError, SandboxParams, parse_params};

/// Params of `fs/createDirectory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCreateDirectoryParams {
    /// The new directory.
    pub path: FsPath,
    /// Whether missing parents are created and an existing directory is accepted.
    #[serde(default = "default_true", deserialize_with = "or_true")]
    pub recursive: bool,
    /// Whether the path may contain symbolic links.
    #[serde(
        default = "default_true",
        deserialize_with = "or_true",
        skip_serializing_if = "is_true"
    )]
    pub follow_symlinks: bool,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Params of `fs/getMetadata`. The result is [`FileMetadata`](outpost_types::FileMetadata).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsGetMetadataParams {
    /// The path.
    pub path: FsPath,
    /// Whether the path may contain symbolic links.
    #[serde(
        default = "default_true",
        deserialize_with = "or_true",
        skip_serializing_if = "is_true"
    )]
    pub follow_symlinks: bool,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Params of `fs/canonicalize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCanonicalizeParams {
    /// The path.
    pub path: FsPath,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Result of `fs/canonicalize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsCanonicalizeResult {
    /// The path with all symbolic links resolved.
    pub path: PathUri,
}

/// Params of `fs/readDirectory`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsReadDirectoryParams {
    /// The directory.
    pub path: FsPath,
    /// Whether symbolic links without a target are listed.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub broken_links: bool,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Result of `fs/readDirectory`. `E` is the list of entries, owned or borrowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FsReadDirectoryResult<E = Vec<DirectoryEntry>> {
    /// The entries, sorted by name.
    pub entries: E,
}

/// Params of `fs/walk`. The result is [`WalkResult`](outpost_types::WalkResult).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsWalkParams {
    /// The root of the tree.
    pub path: FsPath,
    /// The limits.
    #[serde(deserialize_with = "object")]
    pub options: WalkOptions,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Params of `fs/remove`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsRemoveParams {
    /// The path.
    pub path: FsPath,
    /// Whether a directory is removed with its content.
    #[serde(default = "default_true", deserialize_with = "or_true")]
    pub recursive: bool,
    /// Whether a missing path counts as removed.
    #[serde(default = "default_true", deserialize_with = "or_true")]
    pub force: bool,
    /// Whether the path may contain symbolic links.
    #[serde(
        default = "default_true",
        deserialize_with = "or_true",
        skip_serializing_if = "is_true"
    )]
    pub follow_symlinks: bool,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// Params of `fs/copy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FsCopyParams {
    /// The original.
    pub source_path: FsPath,
    /// The path of the copy.
    pub destination_path: FsPath,
    /// Whether a directory is copied with its content; it is rejected otherwise.
    #[serde(default, deserialize_with = "or_default")]
    pub recursive: bool,
    /// The sandbox of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxParams>,
}

/// A file operation with its sandbox: a request of one of the methods above.
#[derive(Clone, Debug, PartialEq)]
pub struct FileRequest {
    /// The operation.
    pub op: FileOp,
    /// The sandbox of the operation.
    pub sandbox: Option<SandboxParams>,
}

/// The reason why params are no [`FileRequest`].
#[derive(Debug, thiserror::Error)]
pub enum FileRequestError {
    /// The params are malformed.
    #[error(transparent)]
    Params(#[from] InvalidParams),
    /// A path is not one of this host.
    #[error(transparent)]
    Path(#[from] PathUriError),
}

impl FileRequest {
    /// Parses the params of a method; none if the method is no file operation.
    #[must_use]
    pub fn parse(
        method: Method,
        params: Option<&RawValue>,
    ) -> Option<Result<Self, FileRequestError>> {
        Some(match method {
            Method::FsCreateDirectory => parse_as::<FsCreateDirectoryParams>(params),
            Method::FsGetMetadata => parse_as::<FsGetMetadataParams>(params),
            Method::FsCanonicalize => parse_as::<FsCanonicalizeParams>(params),
            Method::FsReadDirectory => parse_as::<FsReadDirectoryParams>(params),
            Method::FsWalk => parse_as::<FsWalkParams>(params),
            Method::FsRemove => parse_as::<FsRemoveParams>(params),
            Method::FsCopy => parse_as::<FsCopyParams>(params),
            _ => return None,
        })
    }

    /// The method of the request.
    #[must_use]
    pub fn method(&self) -> Method {
        match self.op {
            FileOp::CreateDirectory { .. } => Method::FsCreateDirectory,
            FileOp::GetMetadata { .. } => Method::FsGetMetadata,
            FileOp::Canonicalize { .. } => Method::FsCanonicalize,
            FileOp::ReadDirectory { .. } => Method::FsReadDirectory,
            FileOp::Walk { .. } => Method::FsWalk,
            FileOp::Remove { .. } => Method::FsRemove,
            FileOp::Copy { .. } => Method::FsCopy,
        }
    }

    /// Parses the result of the request.
    ///
    /// # Errors
    /// When it is not the result of this method.
    pub fn parse_reply(&self, result: &RawValue) -> Result<FileReply, serde_json::Error> {
        let result = result.get();
        Ok(match self.op {
            FileOp::CreateDirectory { .. } | FileOp::Remove { .. } | FileOp::Copy { .. } => {
                let Empty {} = serde_json::from_str(result)?;
                FileReply::Done
            }
            FileOp::GetMetadata { .. } => FileReply::Metadata(serde_json::from_str(result)?),
            FileOp::Canonicalize { .. } => {
                let FsCanonicalizeResult { path } = serde_json::from_str(result)?;
                FileReply::Path(path.into_path())
            }
            FileOp::ReadDirectory { .. } => {
                let FsReadDirectoryResult { entries } = serde_json::from_str(result)?;
                FileReply::Entries(entries)
            }
            FileOp::Walk { .. } => FileReply::Walk(serde_json::from_str(result)?),
        })
    }
}

fn parse_as<P>(params: Option<&RawValue>) -> Result<FileRequest, FileRequestError>
where
    P: DeserializeOwned,
    FileRequest: TryFrom<P, Error = PathUriError>,
{
    Ok(parse_params::<P>(params)?.try_into()?)
}

/// Implements the conversion from params to a request.
macro_rules! request {
    ($type:ty, $params:ident => $op:expr) => {
        impl TryFrom<$type> for FileRequest {
            type Error = PathUriError;

            fn try_from($params: $type) -> Result<Self, PathUriError> {
                Ok(FileRequest {
                    op: $op,
                    sandbox: $params.sandbox,
                })
            }
        }
    };
}

request!(FsCreateDirectoryParams, params => FileOp::CreateDirectory {
    path: params.path.into_path()?,
    recursive: params.recursive,
    symlinks: Symlinks::following(params.follow_symlinks),
});
request!(FsGetMetadataParams, params => FileOp::GetMetadata {
    path: params.path.into_path()?,
    symlinks: Symlinks::following(params.follow_symlinks),
});
request!(FsCanonicalizeParams, params => FileOp::Canonicalize {
    path: params.path.into_path()?,
});
request!(FsReadDirectoryParams, params => FileOp::ReadDirectory {
    path: params.path.into_path()?,
    broken_links: params.broken_links,
});
request!(FsWalkParams, params => FileOp::Walk {
    path: params.path.into_path()?,
    options: params.options,
});
request!(FsRemoveParams, params => FileOp::Remove {
    path: params.path.into_path()?,
    recursive: params.recursive,
    force: params.force,
    symlinks: Symlinks::following(params.follow_symlinks),
});
request!(FsCopyParams, params => FileOp::Copy {
    source: params.source_path.into_path()?,
    destination: params.destination_path.into_path()?,
    recursive: params.recursive,
});

/// Serializes as the params of the method.
impl Serialize for FileRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let uri = |path: &Path| FsPath::from(PathUri::from_path(path));
        let sandbox = self.sandbox.clone();
        match &self.op {
            FileOp::CreateDirectory {
                path,
                recursive,
                symlinks,
            } => FsCreateDirectoryParams {
                path: uri(path),
                recursive: *recursive,
                follow_symlinks: symlinks.are_followed(),
                sandbox,
            }
            .serialize(serializer),
            FileOp::GetMetadata { path, symlinks } => FsGetMetadataParams {
                path: uri(path),
                follow_symlinks: symlinks.are_followed(),
                sandbox,
            }
            .serialize(serializer),
            FileOp::Canonicalize { path } => FsCanonicalizeParams {
                path: uri(path),
                sandbox,
            }
            .serialize(serializer),
            FileOp::ReadDirectory { path, broken_links } => FsReadDirectoryParams {
                path: uri(path),
                broken_links: *broken_links,
                sandbox,
            }
            .serialize(serializer),
            FileOp::Walk { path, options } => FsWalkParams {
                path: uri(path),
                options: *options,
                sandbox,
            }
            .serialize(serializer),
            FileOp::Remove {
                path,
                recursive,
                force,
                symlinks,
            } => FsRemoveParams {
                path: uri(path),
                recursive: *recursive,
                force: *force,
                follow_symlinks: symlinks.are_followed(),
                sandbox,
            }
            .serialize(serializer),
            FileOp::Copy {
                source,
                destination,
                recursive,
            } => FsCopyParams {
                source_path: uri(source),
                destination_path: uri(destination),
                recursive: *recursive,
                sandbox,
            }
            .serialize(serializer),
        }
    }
}

/// Serializes a reply as the result of its method.
#[derive(Clone, Debug)]
pub struct FileResult(pub FileReply);

impl Serialize for FileResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            FileReply::Done => Empty {}.serialize(serializer),
            FileReply::Metadata(metadata) => metadata.serialize(serializer),
            FileReply::Path(path) => FsCanonicalizeResult {
                path: PathUri::from_path(path),
            }
            .serialize(serializer),
            FileReply::Entries(entries) => FsReadDirectoryResult { entries }.serialize(serializer),
            FileReply::Walk(walk) => walk.serialize(serializer),
        }
    }
}
