//! What a walk leaves out of a directory: links, and what is neither a file nor a
//! directory.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use outpost_client::{FileError, FileErrorKind, Files};

use super::together::together;

/// How many are looked at at once; several directories may be, too.
const AT_ONCE: usize = 4;

/// What something is, when it is looked at itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    Directory,
    File,
    /// A link, and what it leads to, if that could be seen.
    Link(Option<Target>),
    Other,
}

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Directory,
    File,
    Other,
    Nothing,
}

/// Something that a walk didn't tell of: a link to this, or this itself.
#[derive(Clone, Debug)]
pub(super) struct Stray {
    pub(super) path: PathBuf,
    pub(super) target: Target,
}

/// All that is in a directory and isn't among the known, by name. Of links that lead nowhere
/// released servers don't tell.
pub(super) async fn strays(
    files: &Files,
    directory: &Path,
    known: &HashSet<PathBuf>,
) -> Result<Vec<Stray>, FileError> {
    let mut unknown = Vec::new();
    for entry in files.read_directory_with_broken_links(directory).await? {
        let path = directory.join(&entry.file_name);
        if !known.contains(&path) {
            let target = match entry {
                _ if entry.is_directory => Target::Directory,
                _ if entry.is_file => Target::File,
                _ if entry.is_broken_link => Target::Nothing,
                _ => Target::Other,
            };
            unknown.push(Stray { path, target });
        }
    }
    unknown.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(unknown)
}

/// The same, and what each of them is.
pub(super) async fn looked_at(
    files: &Files,
    directory: &Path,
    known: &HashSet<PathBuf>,
) -> Result<Vec<(Stray, Nature)>, FileError> {
    let strays = strays(files, directory, known).await?;
    let looked = together(strays, AT_ONCE, |stray| {
        let files = files.clone();
        async move {
            let nature = stray.nature(&files).await?;
            Ok(nature.map(|nature| (stray, nature)))
        }
    });
    let looked = looked.await.into_iter();
    looked.filter_map(Result::transpose).collect()
}

impl Stray {
    /// Looks at it itself; none if it is gone by now. This fails only with its place.
    pub(super) async fn nature(&self, files: &Files) -> Result<Option<Nature>, FileError> {
        if self.target == Target::Nothing {
            // Only links are told to lead there, and what they lead to can't be looked at.
            return Ok(Some(Nature::Link(Some(Target::Nothing))));
        }
        Ok(Some(
            match (files.metadata(&self.path).await, self.target) {
                (Ok(known), target) if known.is_symlink => Nature::Link(Some(target)),
                (Err(error), _) if error.kind() == FileErrorKind::NotFound => return Ok(None),
                (Err(error), _) if error.place().is_some() => return Err(error),
                // What can be named and not be looked at leads to where nobody may look.
                (Err(_), _) => Nature::Link(None),
                // It has come between the walk and this.
                (Ok(_), Target::Directory) => Nature::Directory,
                (Ok(_), Target::File) => Nature::File,
                (Ok(_), Target::Other | Target::Nothing) => Nature::Other,
            },
        ))
    }
}

#[cfg(test)]
mod tests {
    use outpost_client::{Local, LocalOptions, Place as _};

    use super::*;

    #[tokio::test]
    async fn what_can_not_be_looked_at_is_a_link_to_nobody_knows_what() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let place = Local::new(LocalOptions::default()).unwrap();
        let files = place.files();
        for (path, nature) in [
            (file.clone(), Some(Nature::File)),
            (folder.path().join("gone"), None),
            (file.join("below"), Some(Nature::Link(None))),
        ] {
            let target = Target::File;
            let stray = Stray { path, target };
            assert_eq!(stray.nature(&files).await.unwrap(), nature, "{stray:?}");
        }
        place.close().await.unwrap();
    }
}
