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
    /// A link, and what it leads to.
    Link(Target),
    Other,
}

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Directory,
    File,
    Other,
}

/// Something that a walk didn't tell of.
#[derive(Debug)]
pub(super) struct Stray {
    pub(super) path: PathBuf,
    pub(super) nature: Nature,
}

/// All that is in a directory and isn't among the known, by name. A link that
/// leads nowhere can't be seen: no place tells of those.
pub(super) async fn strays(
    files: &Files,
    directory: &Path,
    known: &HashSet<PathBuf>,
) -> Result<Vec<Stray>, FileError> {
    let mut unknown = Vec::new();
    for entry in files.read_directory(directory).await? {
        let path = directory.join(entry.file_name);
        if !known.contains(&path) {
            let target = match (entry.is_directory, entry.is_file) {
                (true, _) => Target::Directory,
                (_, true) => Target::File,
                _ => Target::Other,
            };
            unknown.push((path, target));
        }
    }
    let looked = together(unknown, AT_ONCE, |(path, target)| {
        let files = files.clone();
        async move {
            let nature = match (files.metadata(&path).await, target) {
                (Ok(known), target) if known.is_symlink => Nature::Link(target),
                // It is gone by now.
                (Err(error), _) if error.kind() == FileErrorKind::NotFound => return Ok(None),
                (Err(error), _) if error.place().is_some() => return Err(error),
                // It has come between the walk and this.
                (Ok(_), Target::Directory) => Nature::Directory,
                (Ok(_), Target::File) => Nature::File,
                (Ok(_), Target::Other) | (Err(_), _) => Nature::Other,
            };
            Ok(Some(Stray { path, nature }))
        }
    })
    .await;
    let mut found = Vec::new();
    for stray in looked {
        found.extend(stray?);
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}
