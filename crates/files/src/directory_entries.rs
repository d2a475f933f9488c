//! Reads the names in a directory.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Dir, FileType, statat};
use rustix::io::Errno;

use crate::FilesError;
use crate::resolve::{Identity, file_type};

/// A directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: OsString,
    /// Its own type, without following a symbolic link.
    pub(crate) kind: FileType,
}

/// Iterates over the entries of a directory, unsorted.
#[derive(Debug)]
pub(crate) struct Names {
    entries: Dir,
    omitted: Vec<OsString>,
}

impl Names {
    pub(crate) fn new(directory: impl AsFd, omitted: &HiddenNames) -> Result<Self, FilesError> {
        Ok(Names {
            entries: Dir::read_from(&directory)?,
            omitted: omitted.in_directory(&directory)?,
        })
    }

    /// The next entry of `directory`, which must be the directory passed to [`new`](Self::new).
    pub(crate) fn next(&mut self, directory: impl AsFd) -> Result<Option<Name>, FilesError> {
        let directory = directory.as_fd();
        while let Some(entry) = self.entries.read() {
            let entry = entry?;
            let text = OsStr::from_bytes(entry.file_name().to_bytes());
            if text == "." || text == ".." || self.omitted.iter().any(|name| name == text) {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not store the type in the directory.
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

/// Up to `limit` entries of a directory, unsorted.
pub(crate) fn names_in(
    directory: impl AsFd,
    limit: usize,
    omitted: &HiddenNames,
) -> Result<Vec<Name>, FilesError> {
    let directory = directory.as_fd();
    let mut entries = Names::new(directory, omitted)?;
    let mut names = Vec::new();
    while names.len() < limit
        && let Some(name) = entries.next(directory)?
    {
        names.push(name);
    }
    Ok(names)
}

/// Takes memory for a listing while it is built, in bytes. Returns false if there is none.
pub type TakeListingMemory<'a> = &'a mut dyn FnMut(usize) -> bool;

/// The memory of an entry of a listing besides its name, twice: as it was read, and in the result.
const ENTRY_BYTES: usize = 128;

/// Takes the memory of an entry with a name or path of `len` bytes.
pub(crate) fn take_entry_memory(
    take_memory: TakeListingMemory<'_>,
    len: usize,
) -> Result<(), FilesError> {
    match take_memory(2 * len + ENTRY_BYTES) {
        true => Ok(()),
        false => Err(FilesError::NoListingMemory),
    }
}

/// All entries of a directory, sorted by name. Fails if there are more than `limit`.
pub(crate) fn sorted_names(
    directory: impl AsFd,
    limit: usize,
    omitted: &HiddenNames,
    take_memory: TakeListingMemory<'_>,
) -> Result<Vec<Name>, FilesError> {
    let directory = directory.as_fd();
    let mut entries = Names::new(directory, omitted)?;
    let mut names = Vec::new();
    while let Some(name) = entries.next(directory)? {
        if names.len() == limit {
            return Err(FilesError::TooManyEntries { limit });
        }
        take_entry_memory(take_memory, name.text.len())?;
        names.push(name);
    }
    names.sort_unstable_by(|a, b| a.text.cmp(&b.text));
    Ok(names)
}

/// The first `limit` entries of a directory in the order of their names. Keeps no more than that in
/// memory.
pub(crate) fn first_names(
    directory: impl AsFd,
    limit: usize,
    omitted: &HiddenNames,
    take_memory: TakeListingMemory<'_>,
) -> Result<Vec<Name>, FilesError> {
    let directory = directory.as_fd();
    let mut entries = Names::new(directory, omitted)?;
    let mut first = BTreeMap::new();
    while let Some(Name { text, kind }) = entries.next(directory)? {
        let len = text.len();
        first.insert(text, kind);
        if first.len() > limit {
            first.pop_last();
        } else {
            take_entry_memory(take_memory, len)?;
        }
    }
    let names = first.into_iter();
    Ok(names.map(|(text, kind)| Name { text, kind }).collect())
}

/// The type of the entry's target; none for a symbolic link without a target.
pub(crate) fn target_type(directory: impl AsFd, name: &Name) -> Option<FileType> {
    if name.kind != FileType::Symlink {
        return Some(name.kind);
    }
    match statat(directory, &name.text, AtFlags::empty()) {
        Ok(stat) => Some(file_type(&stat)),
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => None,
        Err(_) => Some(FileType::Unknown),
    }
}

/// The omitted names by the identity of their directory, which may be reached by any path.
#[derive(Clone, Debug, Default)]
pub(crate) struct HiddenNames(HashMap<Identity, Vec<OsString>>);

impl HiddenNames {
    /// Omits these paths. A path whose parent is not accessible cannot be listed anyway.
    pub(crate) fn new<'a>(paths: impl Iterator<Item = &'a Path>) -> Self {
        let mut by_directory: HashMap<_, Vec<_>> = HashMap::new();
        for (parent, name) in paths.filter_map(|path| path.parent().zip(path.file_name())) {
            if let Ok(stat) = statat(CWD, parent, AtFlags::empty()) {
                let names = by_directory.entry(Identity::from(&stat)).or_default();
                names.push(name.to_owned());
            }
        }
        HiddenNames(by_directory)
    }

    /// The names to leave out of a directory.
    pub(crate) fn in_directory(&self, directory: impl AsFd) -> Result<Vec<OsString>, Errno> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let names = self.0.get(&Identity::of(directory)?);
        Ok(names.cloned().unwrap_or_default())
    }
}
