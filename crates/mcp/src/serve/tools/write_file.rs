//! The tool `write_file`.

use std::{fmt, path::Path};

use bytes::Bytes;
use outpost_client::{Error, FileError, FileErrorKind, Files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::encoding::Encoding;
use crate::serve::{CallContext, Tool, ToolError, text};

/// Creates a file, or replaces the whole content of an existing one, whose permissions are
/// preserved. The change is atomic, except on older servers. To change a part of a file, use
/// edit_file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// The file, absolute or relative to the default working directory. Missing parent
    /// directories are created.
    path: String,
    /// The whole content of the file.
    content: String,
    /// The encoding of the content; utf8 if not given.
    encoding: Option<Encoding>,
    /// The action if the file exists: replace it, which is the default, or fail.
    if_exists: Option<IfExists>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum IfExists {
    Replace,
    Fail,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Written {
    path: String,
    size_bytes: u64,
    /// Whether the file did not exist before.
    created: bool,
}

impl Tool for WriteFile {
    type Output = Written;

    async fn call(self, context: &CallContext<'_>) -> Result<Written, ToolError> {
        let encoding = self.encoding.unwrap_or_default();
        let bytes = encoding.decode("content", self.content)?;
        let (files, path) = context.server.locate(Some(&self.path)).await?;
        let size_bytes = bytes.len() as u64;
        let work = async {
            let _lock = context.server.file_locks.lock(&files, path.clone()).await;
            let existing = match files.metadata(&path).await {
                Ok(metadata) => Some(metadata),
                Err(error) if error.kind() == FileErrorKind::NotFound => None,
                Err(error) => return Err(error.into()),
            };
            match existing {
                Some(metadata) if metadata.is_directory => {
                    return Err(ToolError::IsDirectory { path: path.clone() });
                }
                Some(_) if self.if_exists == Some(IfExists::Fail) => {
                    return Err(ToolError::Exists { path: path.clone() });
                }
                Some(_) => {}
                None => {
                    if let Some(parent) = path.parent() {
                        files.create_directory(parent, true).await?;
                    }
                }
            }
            replace_content(&files, &path, bytes).await?;
            Ok(Written {
                path: path.display().to_string(),
                size_bytes,
                created: existing.is_none(),
            })
        };
        context.run_file_operation("writing", work).await
    }
}

/// Replaces the content of a file atomically, preserving its mode.
pub(super) async fn replace_content(
    files: &Files,
    path: &Path,
    bytes: Vec<u8>,
) -> Result<(), FileError> {
    match files.create(path).await {
        Ok(mut writer) => {
            writer.put(Bytes::from(bytes)).await?;
            writer.commit().await
        }
        // Older servers can only write in place.
        Err(error) if matches!(error.executor_error(), Some(Error::Unsupported { .. })) => {
            files.write(path, bytes).await
        }
        Err(error) => Err(error),
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = if self.created { "created" } else { "replaced" };
        let size = text::bytes(self.size_bytes);
        write!(f, "{action} {} ({size})", self.path)
    }
}
