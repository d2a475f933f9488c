//! Opens paths without following symbolic links.
//!
//! A plan names canonical paths, and every path is resolved again when it is mounted. A process that
//! was sandboxed earlier may have replaced a writable directory by a symbolic link in between.

use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::Identity;

/// Reports how far a path could be opened.
#[derive(Debug)]
pub(crate) struct OpenError {
    pub(super) errno: Errno,
    /// The last directory that could be opened.
    pub(super) last_directory: Option<OwnedFd>,
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        OpenError {
            errno,
            last_directory: None,
        }
    }
}

impl From<OpenError> for Errno {
    fn from(error: OpenError) -> Self {
        error.errno
    }
}

const PATH_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens an absolute path with `O_PATH`. A symbolic link in any component, also the last, is an
/// error.
pub(crate) fn open(path: &Path) -> Result<OwnedFd, OpenError> {
    open_in(open_root()?, path)
}

/// Opens the current root directory.
pub(super) fn open_root() -> Result<OwnedFd, Errno> {
    rustix::fs::open("/", PATH_FLAGS | OFlags::DIRECTORY, Mode::empty())
}

/// Opens an absolute path relative to `root`, which need not be the current root directory.
pub(super) fn open_in(root: OwnedFd, path: &Path) -> Result<OwnedFd, OpenError> {
    let failed = |errno, last_directory| OpenError {
        errno,
        last_directory,
    };
    let mut current = root;
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        let name = match component {
            Component::Normal(name) => name,
            Component::ParentDir => return Err(failed(Errno::INVAL, Some(current))),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
        };
        let flags = if components.peek().is_some() {
            PATH_FLAGS | OFlags::DIRECTORY
        } else {
            PATH_FLAGS
        };
        current = match rustix::fs::openat(&current, name, flags, Mode::empty()) {
            Ok(next) => next,
            Err(errno) => return Err(failed(errno, Some(current))),
        };
    }
    let stat = rustix::fs::fstat(&current)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    Ok(current)
}

/// Returns device and inode of an open file.
pub(crate) fn identity(file: &OwnedFd) -> Result<Identity, Errno> {
    let stat = rustix::fs::fstat(file)?;
    Ok(Identity {
        device: stat.st_dev,
        inode: stat.st_ino,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn symbolic_links_are_not_followed() {
        let directory = tempfile::tempdir().expect("create directory");
        let directory = directory.path().canonicalize().expect("canonicalize");
        std::fs::create_dir_all(directory.join("a/b")).expect("create directories");
        symlink("a", directory.join("link")).expect("create link");
        let opened = open(&directory.join("a/b")).expect("open");
        let inode = directory.join("a/b").metadata().expect("stat").ino();
        assert_eq!(identity(&opened).expect("fstat").inode, inode);
        for (path, errno) in [
            ("link", Errno::LOOP),
            ("link/b", Errno::NOTDIR),
            ("a/c", Errno::NOENT),
            ("a/../a", Errno::INVAL),
        ] {
            let error = open(&directory.join(path)).expect_err(path);
            assert_eq!(error.errno, errno, "{path}");
        }
    }
}
