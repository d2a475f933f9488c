//! What is to be in a file.

use outpost_client::FileErrorKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{encoding::Encoding, replacement::replace};
use crate::serve::{Answer, Call, Effect, Mishap, Tool, Workbench, words};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// Which file, absolute or relative to the default directory. Directories above it that are
    /// missing are made.
    path: String,
    /// All that is to be in it.
    content: String,
    /// How the content is written here; utf8 if not given.
    encoding: Option<Encoding>,
    /// What to do if the file is there already: replace it, which is the default, or fail.
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
    /// Whether there was no such file before.
    created: bool,
}

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write a file";
    const DESCRIPTION: &'static str = "Makes a file, or replaces all that is in one; it keeps its \
        permissions, and on all but older servers nobody sees half of it. To change a part of a \
        file, use edit_file.";
    const EFFECT: Effect = Effect::Replaces;

    type Answer = Written;

    async fn perform(self, bench: &Workbench, call: &Call) -> Result<Written, Mishap> {
        let encoding = self.encoding.unwrap_or(Encoding::Utf8);
        let bytes = encoding.decode("content", self.content)?;
        let footing = bench.footing().await?;
        let path = bench.path(&footing, Some(&self.path));
        let files = bench.files(&footing);
        let size_bytes = bytes.len() as u64;
        let work = async {
            let _turn = bench.turns.of(&files, path.clone()).await;
            let known = match files.metadata(&path).await {
                Ok(known) => Some(known),
                Err(error) if error.kind() == FileErrorKind::NotFound => None,
                Err(error) => return Err(error.into()),
            };
            match known {
                Some(known) if known.is_directory => {
                    return Err(Mishap::IsDirectory { path: path.clone() });
                }
                Some(_) if self.if_exists == Some(IfExists::Fail) => {
                    return Err(Mishap::Exists { path: path.clone() });
                }
                Some(_) => {}
                None => {
                    if let Some(above) = path.parent() {
                        files.create_directory(above, true).await?;
                    }
                }
            }
            replace(&files, &path, bytes).await?;
            Ok(known.is_none())
        };
        let say = || "writing".to_owned();
        let created = call.wait(bench.bounds().search, say, work).await??;
        Ok(Written {
            path: path.display().to_string(),
            size_bytes,
            created,
        })
    }
}

impl Answer for Written {
    fn words(&self) -> String {
        let done = match self.created {
            true => "made",
            false => "replaced",
        };
        format!("{done} {} ({})", self.path, words::bytes(self.size_bytes))
    }
}
