//! The tool `edit_file`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::write_file::replace_content;
use crate::serve::{
    CallContext, Effect, Tool, ToolError, ToolOutput, ToolServer, files::edit, text,
};

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
    const NAME: &'static str = "edit_file";
    const TITLE: &'static str = "Edit a file";
    const DESCRIPTION: &'static str = "Replaces text in a file. The old text must match exactly \
        and occur exactly once, unless replace_all is set. The rest of the file and its \
        permissions are preserved. The change is atomic, except on older servers.";
    const EFFECT: Effect = Effect::Destructive;

    type Output = Edited;

    async fn call(self, server: &ToolServer, context: &CallContext) -> Result<Edited, ToolError> {
        let max = server.limits().file_whole;
        let executor = server.executor().await?;
        let path = server.path(&executor, Some(&self.path));
        let files = server.files(&executor);
        let work = async {
            let _lock = server.file_locks.lock(&files, path.clone()).await;
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
            let around = edited.context(&self.new_text, server.limits().line_bytes);
            replace_content(&files, &path, edited.text.into_bytes()).await?;
            Ok(Edited {
                path: path.display().to_string(),
                replaced: edited.count as u64,
                line: edited.line as u64,
                around,
            })
        };
        let message = || "editing".to_owned();
        context.run(server.limits().search, message, work).await?
    }
}

impl ToolOutput for Edited {
    fn to_text(&self) -> String {
        let replaced = text::count(self.replaced, "occurrence", "occurrences");
        let first = if self.replaced == 1 {
            ""
        } else {
            "the first one "
        };
        format!(
            "replaced {replaced} in {}, {first}on line {}:\n{}",
            self.path, self.line, self.around
        )
    }
}
