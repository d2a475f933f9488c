//! A change in a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::replacement::replace;
use crate::serve::{Answer, Call, Effect, Mishap, Tool, Workbench, files::edit, words};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    /// Which file, absolute or relative to the default directory.
    path: String,
    /// What is to be replaced, exactly as it is in the file, without the line numbers that
    /// read_file shows. It has to be there once only, so give enough of what is around it.
    old_text: String,
    /// What is to be there instead.
    new_text: String,
    /// Replace it wherever it is, instead of insisting that it is there once.
    replace_all: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Changed {
    path: String,
    /// How many places were changed.
    replaced: u64,
    /// The line of the first one.
    line: u64,
    /// The first change with the lines around it, as they are now.
    around: String,
}

impl Tool for EditFile {
    const NAME: &'static str = "edit_file";
    const TITLE: &'static str = "Edit a file";
    const DESCRIPTION: &'static str = "Replaces a piece of text in a file by another. The old text \
        has to be exactly what is there, and there once, unless all of them are meant. The rest of \
        the file stays as it is, with its permissions, and on all but older servers nobody sees \
        half of the change.";
    const EFFECT: Effect = Effect::Changes;

    type Answer = Changed;

    async fn perform(self, bench: &Workbench, call: &Call) -> Result<Changed, Mishap> {
        let most = bench.bounds().file_whole;
        let footing = bench.footing().await?;
        let path = bench.path(&footing, Some(&self.path));
        let files = bench.files(&footing);
        let work = async {
            let _turn = bench.turns.of(&files, path.clone()).await;
            let known = files.metadata(&path).await?;
            let (path, size) = (path.clone(), known.size);
            if known.is_directory {
                return Err(Mishap::IsDirectory { path });
            }
            if size > most {
                return Err(Mishap::TooLarge { path, size, most });
            }
            let text = String::from_utf8(files.read(&path).await?.into());
            let Ok(text) = text else {
                return Err(Mishap::NotText { path });
            };
            let all = self.replace_all.unwrap_or(false);
            let edited = match edit::replace(&text, &self.old_text, &self.new_text, all, most) {
                Ok(edited) => edited,
                Err(why) => return Err(Mishap::Unedited { path, why }),
            };
            let around = edited.around(&self.new_text, bench.bounds().line_bytes);
            replace(&files, &path, edited.text.into_bytes()).await?;
            Ok(Changed {
                path: path.display().to_string(),
                replaced: edited.count as u64,
                line: edited.line as u64,
                around,
            })
        };
        let say = || "editing".to_owned();
        call.wait(bench.bounds().search, say, work).await?
    }
}

impl Answer for Changed {
    fn words(&self) -> String {
        let places = words::count(self.replaced, "place", "places");
        let first = match self.replaced {
            1 => "",
            _ => "the first of them ",
        };
        format!(
            "changed {places} in {}, {first}on line {}:\n{}",
            self.path, self.line, self.around
        )
    }
}
