//! Opens paths, with or without following symbolic links.

use std::ffi::OsStr;
use std::path::Path;

use outpost_types::Symlinks;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, statat,
};
use rustix::io::Errno;

use crate::procfs::check_not_own;
use crate::{Files, FilesError, SymlinkCheck};

/// Flags for a directory that is only used as the base of other calls.
pub(crate) const PATH_DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Files {
    /// Opens a path, unless it leads to the files of this process in a procfs.
    pub(crate) fn open_path(
        &self,
        path: &Path,
        flags: OFlags,
        mode: Mode,
        symlinks: Symlinks,
    ) -> Result<OwnedFd, FilesError> {
        let flags = flags | OFlags::CLOEXEC;
        match symlinks {
            Symlinks::Follow => open_following(path, flags, mode),
            Symlinks::Reject => check_not_own(self.open_without_links(path, flags, mode)?),
        }
    }

    fn open_without_links(
        &self,
        path: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, FilesError> {
        if self.symlink_check == SymlinkCheck::Kernel {
            let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(CWD, path, flags, mode, no_links) {
                Ok(file) => return Ok(file),
                Err(Errno::LOOP) => return Err(FilesError::SymbolicLink),
                // The kernel lacks openat2, or a seccomp filter blocks it. EPERM may also be about
                // the file itself; then the walk below fails with it as well.
                Err(Errno::NOSYS | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (directory, name) = walk_to_parent(path)?;
        match name {
            None => Ok(openat(directory, c".", flags, mode)?),
            Some(name) => open_in(directory, name, flags, mode),
        }
    }

    /// Opens the parent directory of a path. Returns it with the last component. Fails with EBUSY for
    /// the root.
    pub(crate) fn open_parent<'a>(
        &self,
        path: &'a Path,
        symlinks: Symlinks,
    ) -> Result<(OwnedFd, &'a OsStr), FilesError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::BUSY.into());
        };
        Ok((
            self.open_path(parent, PATH_DIRECTORY, Mode::empty(), symlinks)?,
            name,
        ))
    }
}

/// Opens a path and follows symbolic links. Rejects the files of this process in a procfs, and links
/// of a procfs to open files and directories, which need not be in a procfs themselves.
pub(crate) fn open_following(
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, FilesError> {
    let opened = match openat2(CWD, path, flags, mode, ResolveFlags::NO_MAGICLINKS) {
        // Either such a link or a loop.
        Err(Errno::LOOP) if openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, mode).is_ok() => {
            return Err(FilesError::ProcfsLink);
        }
        // As above. Without `openat2` such links are followed.
        Err(Errno::NOSYS | Errno::PERM) => openat(CWD, path, flags, mode)?,
        opened => opened?,
    };
    check_not_own(opened)
}

/// Opens an entry of a directory, unless it is a symbolic link.
pub(crate) fn open_in(
    directory: impl AsFd,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, FilesError> {
    let directory = directory.as_fd();
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if flags.contains(OFlags::PATH) {
        // With O_PATH and O_NOFOLLOW a link itself is opened, so the type check has no race.
        let file = openat(directory, name, flags.difference(OFlags::DIRECTORY), mode)?;
        return match file_type(&fstat(&file)?) {
            FileType::Symlink => Err(FilesError::SymbolicLink),
            kind if flags.contains(OFlags::DIRECTORY) && kind != FileType::Directory => {
                Err(Errno::NOTDIR.into())
            }
            _ => Ok(file),
        };
    }
    match openat(directory, name, flags, mode) {
        Err(Errno::LOOP) => Err(FilesError::SymbolicLink),
        Err(Errno::NOTDIR) if is_link(directory, name) => Err(FilesError::SymbolicLink),
        opened => Ok(opened?),
    }
}

/// The result of a system call; none if the path does not exist.
pub(crate) fn if_exists<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Err(Errno::NOENT) => Ok(None),
        result => result.map(Some),
    }
}

/// Whether an entry is a symbolic link. Only used to choose an error.
pub(crate) fn is_link(directory: impl AsFd, name: &OsStr) -> bool {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| file_type(&stat) == FileType::Symlink)
}

/// Opens the root directory.
pub(crate) fn open_root() -> Result<OwnedFd, FilesError> {
    Ok(openat(CWD, c"/", PATH_DIRECTORY, Mode::empty())?)
}

/// The components of an absolute and normalized path as names to open one after another.
pub(crate) fn component_names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.iter().skip(1)
}

/// Opens the parent of a path component by component, rejecting symbolic links. Returns it with the
/// last component, which is none for a path without components.
fn walk_to_parent(path: &Path) -> Result<(OwnedFd, Option<&OsStr>), FilesError> {
    let mut directory = open_root()?;
    let mut names = component_names(path).peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            return Ok((directory, Some(name)));
        }
        directory = open_in(&directory, name, PATH_DIRECTORY, Mode::empty())?;
    }
    Ok((directory, None))
}

/// A file's device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(file: impl AsFd) -> Result<Self, Errno> {
        Ok(Self::from(&fstat(file)?))
    }
}

impl From<&Stat> for Identity {
    fn from(stat: &Stat) -> Self {
        Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
