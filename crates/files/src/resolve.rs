//! From a path to something open, with or without links on the way.

use std::ffi::OsStr;
use std::path::{Component, Path};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat,
};
use rustix::io::Errno;

use crate::identity::file_type;
use crate::{Files, FilesError, Links, Means};

/// For a directory that is only a place to start from.
pub(crate) const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

impl Files {
    /// Opens what a path leads to.
    pub(crate) fn open_path(
        &self,
        path: &Path,
        flags: OFlags,
        mode: Mode,
        links: Links,
    ) -> Result<OwnedFd, FilesError> {
        let flags = flags | OFlags::CLOEXEC;
        if links == Links::Follow {
            return Ok(openat(CWD, path, flags, mode)?);
        }
        if self.means == Means::Kernel {
            let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(CWD, path, flags, mode, no_links) {
                Ok(file) => return Ok(file),
                Err(Errno::LOOP) => return Err(FilesError::SymbolicLink),
                // It is missing, or filtered by whoever confines us; the latter also looks like a
                // refusal of the file itself, which the walk then finds as well.
                Err(Errno::NOSYS | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (place, name) = walk_to_parent(path)?;
        match name {
            None => Ok(openat(place, c".", flags, mode)?),
            Some(name) => open_in(place, name, flags, mode),
        }
    }

    /// The directory that holds what a path leads to, and what that is called there. The root is in
    /// no directory.
    pub(crate) fn open_parent<'a>(
        &self,
        path: &'a Path,
        links: Links,
    ) -> Result<(OwnedFd, &'a OsStr), FilesError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::BUSY.into());
        };
        let parent = match parent.as_os_str().is_empty() {
            true => Path::new("."),
            false => parent,
        };
        Ok((self.open_path(parent, PLACE, Mode::empty(), links)?, name))
    }
}

/// Opens a name in a directory, unless it is a link.
pub(crate) fn open_in(
    place: impl AsFd,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, FilesError> {
    let place = place.as_fd();
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if flags.contains(OFlags::PATH) {
        // Such a descriptor can be one of a link, so that what is there is asked only once.
        let there = openat(place, name, flags.difference(OFlags::DIRECTORY), mode)?;
        return match file_type(&fstat(&there)?) {
            FileType::Symlink => Err(FilesError::SymbolicLink),
            kind if flags.contains(OFlags::DIRECTORY) && kind != FileType::Directory => {
                Err(Errno::NOTDIR.into())
            }
            _ => Ok(there),
        };
    }
    match openat(place, name, flags, mode) {
        Err(Errno::LOOP) => Err(FilesError::SymbolicLink),
        Err(Errno::NOTDIR) if is_link(place, name) => Err(FilesError::SymbolicLink),
        opened => Ok(opened?),
    }
}

/// Whether a name is that of a link. Only the words of a refusal depend on it.
pub(crate) fn is_link(place: impl AsFd, name: &OsStr) -> bool {
    statat(place, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| file_type(&stat) == FileType::Symlink)
}

/// Where a walk along a path starts.
pub(crate) fn start_of(path: &Path) -> Result<OwnedFd, FilesError> {
    let start = if path.is_absolute() { c"/" } else { c"." };
    Ok(openat(CWD, start, PLACE | OFlags::CLOEXEC, Mode::empty())?)
}

/// The names to go through from there.
pub(crate) fn names_of(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        Component::ParentDir => Some(OsStr::new("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Goes from directory to directory, none of them a link, up to the last name.
fn walk_to_parent(path: &Path) -> Result<(OwnedFd, Option<&OsStr>), FilesError> {
    let mut place = start_of(path)?;
    let mut names = names_of(path).peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            return Ok((place, Some(name)));
        }
        place = open_in(&place, name, PLACE, Mode::empty())?;
    }
    Ok((place, None))
}
