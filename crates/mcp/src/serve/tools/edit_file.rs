//! The tool `edit_file`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::write_file::replace_content;
use crate::serve::{CallContext, Tool, ToolError, files::edit, text};

/// Replaces text in a file. The old text must match exactly and occur exactly once, unless
/// replace_all is set. The rest of the file and its permissions are preserved. The change is
/// atomic, except on older servers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    /// The file, absolute or relative to the default working directory.
    path: String,
    /// The text to replace, exactly as it is in the file, without the line numbers that
    /// read_file shows. It must occur exactly once, so include enough surrounding text.
    old_text: String,
    /// The replacement.
    new_text: String,
    /// Replace all occurrences, instead of requiring exactly one.
    replace_all: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Edited {
    path: String,
    /// The number of replacements.
    replaced: u64,
    /// The line of the first one.
    line: u64,
    /// The first change with its surrounding lines, after the edit.
    around: String,
}

impl Tool for EditFile {
    type Output = Edited;

    async fn call(self, context: &CallContext<'_>) -> Result<Edited, ToolError> {
        let limits = context.server.limits();
        let max = limits.whole_file_bytes;
        let (files, path) = context.server.locate(Some(&self.path)).await?;
        let work = async {
            let _lock = context.server.file_locks.lock(&files, path.clone()).await;
            let metadata = files.metadata(&path).await?;
            let (path, size) = (path.clone(), metadata.size);
            if metadata.is_directory {
                return Err(ToolError::IsDirectory { path });
            }
            if size > max {
                return Err(ToolError::TooLarge { path, size, max });
            }
            let Ok(content) = String::from_utf8(files.read(&path).await?.into()) else {
                return Err(ToolError::NotUtf8 { path });
            };
            let all = self.replace_all.unwrap_or(false);
            let edited = match edit::replace(&content, &self.old_text, &self.new_text, all, max) {
                Ok(edited) => edited,
                Err(why) => return Err(ToolError::Edit { path, why }),
            };
            let around = edited.context(&self.new_text, limits.line_bytes);
            replace_content(&files, &path, edited.text.into_bytes()).await?;
            Ok(Edited {
                path: path.display().to_string(),
                replaced: edited.count as u64,
                line: edited.line as u64,
                around,
            })
        };
        context.run_file_operation("editing", work).await
    }
}

impl fmt::Display for Edited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replaced = text::count(self.replaced, "occurrence", "occurrences");
        let first = if self.replaced == 1 {
            ""
        } else {
            "the first one "
        };
        write!(
            f,
            "replaced {replaced} in {}, {first}on line {}:\n{}",
            self.path, self.line, self.around
        )
    }
}
