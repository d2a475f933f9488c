//! Params and results of file operations as app-server clients send them: absolute native paths instead
//! of `file:` URIs.

use outpost_types::FileMetadata;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    AbsolutePath, FileOp, FileRequest, FsCopyParams, FsCreateDirectoryParams, FsGetMetadataParams,
    FsReadDirectoryParams, FsReadFileParams, FsRemoveParams, FsWriteFileParams, InvalidParams,
    Method, parse_params,
};

/// Result of `fs/getMetadata` on a connection of an app-server client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppMetadata {
    /// Whether the path leads to a directory.
    pub is_directory: bool,
    /// Whether the path leads to a regular file.
    pub is_file: bool,
    /// Whether the path itself is a symbolic link.
    pub is_symlink: bool,
    /// The creation time, in milliseconds since 1970; 0 if the file system does not record it.
    pub created_at_ms: i64,
    /// The time of the last change, in milliseconds since 1970.
    pub modified_at_ms: i64,
}

impl From<FileMetadata> for AppMetadata {
    fn from(metadata: FileMetadata) -> Self {
        AppMetadata {
            is_directory: metadata.is_directory,
            is_file: metadata.is_file,
            is_symlink: metadata.is_symlink,
            created_at_ms: metadata.created_at_ms,
            modified_at_ms: metadata.modified_at_ms,
        }
    }
}

impl From<FsReadFileParams<AbsolutePath>> for FsReadFileParams {
    fn from(native: FsReadFileParams<AbsolutePath>) -> Self {
        FsReadFileParams {
            path: native.path.into(),
            symlinks: native.symlinks,
            sandbox: native.sandbox,
        }
    }
}

impl From<FsWriteFileParams<AbsolutePath>> for FsWriteFileParams {
    fn from(native: FsWriteFileParams<AbsolutePath>) -> Self {
        FsWriteFileParams {
            path: native.path.into(),
            data_base64: native.data_base64,
            symlinks: native.symlinks,
            sandbox: native.sandbox,
        }
    }
}

impl FileRequest {
    /// Parses the params of a method with native paths; none if the method takes none.
    #[must_use]
    pub fn parse_native(
        method: Method,
        params: Option<&RawValue>,
    ) -> Option<Result<Self, InvalidParams>> {
        let op = match method {
            Method::FsCreateDirectory => {
                parse_params(params).map(|native: FsCreateDirectoryParams<AbsolutePath>| {
                    FileOp::CreateDirectory(FsCreateDirectoryParams {
                        path: native.path.into(),
                        recursive: native.recursive,
                        symlinks: native.symlinks,
                    })
                })
            }
            Method::FsGetMetadata => {
                parse_params(params).map(|native: FsGetMetadataParams<AbsolutePath>| {
                    FileOp::GetMetadata(FsGetMetadataParams {
                        path: native.path.into(),
                        symlinks: native.symlinks,
                    })
                })
            }
            Method::FsReadDirectory => {
                parse_params(params).map(|native: FsReadDirectoryParams<AbsolutePath>| {
                    FileOp::ReadDirectory(FsReadDirectoryParams {
                        path: native.path.into(),
                        broken_links: native.broken_links,
                    })
                })
            }
            Method::FsRemove => parse_params(params).map(|native: FsRemoveParams<AbsolutePath>| {
                FileOp::Remove(FsRemoveParams {
                    path: native.path.into(),
                    recursive: native.recursive,
                    force: native.force,
                    symlinks: native.symlinks,
                })
            }),
            Method::FsCopy => parse_params(params).map(|native: FsCopyParams<AbsolutePath>| {
                FileOp::Copy(FsCopyParams {
                    source_path: native.source_path.into(),
                    destination_path: native.destination_path.into(),
                    recursive: native.recursive,
                })
            }),
            _ => return None,
        };
        Some(Self::with_sandbox(op, params))
    }
}
