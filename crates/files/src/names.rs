//! The names in a directory.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use crate::FilesError;
use crate::gaps::Gaps;
use crate::identity::file_type;

/// A name in a directory, and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: OsString,
    /// What it is itself: a link is one here.
    pub(crate) kind: FileType,
}

/// The names in a directory, one after the other and in no order, however many there are.
#[derive(Debug)]
pub(crate) struct Names {
    entries: Dir,
    left_out: Vec<OsString>,
}

impl Names {
    pub(crate) fn of(directory: impl AsFd, gaps: &Gaps) -> Result<Self, FilesError> {
        Ok(Names {
            entries: Dir::read_from(&directory)?,
            left_out: gaps.of(&directory)?,
        })
    }

    /// The next name in `directory`, which must be the one that this was made for.
    pub(crate) fn next(&mut self, directory: impl AsFd) -> Result<Option<Name>, FilesError> {
        let directory = directory.as_fd();
        while let Some(entry) = self.entries.read() {
            let entry = entry?;
            let text = OsStr::from_bytes(entry.file_name().to_bytes());
            if text == "." || text == ".." || self.left_out.iter().any(|left| left == text) {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems leave it to whoever wants to know.
                FileType::Unknown => match statat(directory, text, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => file_type(&stat),
                    Err(Errno::NOENT) => continue,
                    Err(_) => FileType::Unknown,
                },
                kind => kind,
            };
            return Ok(Some(Name {
                text: text.to_owned(),
                kind,
            }));
        }
        Ok(None)
    }
}

/// The names in a directory, in no order, but no more than `limit` of them.
pub(crate) fn names_in(
    directory: impl AsFd,
    limit: usize,
    gaps: &Gaps,
) -> Result<Vec<Name>, FilesError> {
    let directory = directory.as_fd();
    let mut left = Names::of(directory, gaps)?;
    let mut names = Vec::new();
    while names.len() < limit
        && let Some(name) = left.next(directory)?
    {
        names.push(name);
    }
    Ok(names)
}

/// All names in a directory, sorted, if there are no more than `limit`.
pub(crate) fn sorted_names(
    directory: impl AsFd,
    limit: usize,
    gaps: &Gaps,
) -> Result<Vec<Name>, FilesError> {
    let mut names = names_in(directory, limit.saturating_add(1), gaps)?;
    if names.len() > limit {
        return Err(FilesError::TooManyEntries { limit });
    }
    names.sort_unstable_by(|a, b| a.text.cmp(&b.text));
    Ok(names)
}

/// The first names of a directory, sorted, and no more than `limit` of them. All others are seen and
/// forgotten, however many there are.
pub(crate) fn first_names(
    directory: impl AsFd,
    limit: usize,
    gaps: &Gaps,
) -> Result<Vec<Name>, FilesError> {
    let directory = directory.as_fd();
    let mut left = Names::of(directory, gaps)?;
    let mut first = BTreeMap::new();
    while let Some(Name { text, kind }) = left.next(directory)? {
        first.insert(text, kind);
        if first.len() > limit {
            first.pop_last();
        }
    }
    let names = first.into_iter();
    Ok(names.map(|(text, kind)| Name { text, kind }).collect())
}

/// What a name leads to; none if it leads nowhere.
pub(crate) fn target_of(directory: impl AsFd, name: &Name) -> Option<FileType> {
    if name.kind != FileType::Symlink {
        return Some(name.kind);
    }
    match statat(directory, &name.text, AtFlags::empty()) {
        Ok(stat) => Some(file_type(&stat)),
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => None,
        Err(_) => Some(FileType::Unknown),
    }
}
