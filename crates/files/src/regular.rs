//! Regular files, and how not to open anything else.

use std::fs::File;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::identity::file_type;
use crate::{Files, FilesError, Links};

/// A FIFO is opened without waiting for its other end, a terminal without becoming ours.
pub(crate) const CAUTION: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

impl Files {
    /// Opens a regular file for reading.
    pub(crate) fn open_regular(&self, path: &Path, links: Links) -> Result<File, FilesError> {
        self.look_first(path, links)?;
        let file = self.open_path(path, OFlags::RDONLY | CAUTION, Mode::empty(), links)?;
        check_regular(&file)?;
        Ok(file.into())
    }

    /// Opens a regular file for writing, and makes it if there is none. What is in it stays.
    pub(crate) fn open_to_write(&self, path: &Path, links: Links) -> Result<File, FilesError> {
        let flags = OFlags::WRONLY | CAUTION;
        let mode = Mode::from_raw_mode(0o666);
        // To make what is there already is refused in some shared folders, where to write it isn't.
        let there = self
            .look_first(path, links)
            .and_then(|()| self.open_path(path, flags, Mode::empty(), links));
        let file = match there {
            Err(error) if error.is(Errno::NOENT) => {
                self.open_path(path, flags | OFlags::CREATE, mode, links)?
            }
            opened => opened?,
        };
        check_regular(&file)?;
        Ok(file.into())
    }

    /// Looks at what a path leads to without opening it: to open a device may do something, and a
    /// socket can't be opened at all. It may be replaced afterwards, so who opens it looks again.
    fn look_first(&self, path: &Path, links: Links) -> Result<(), FilesError> {
        let there = self.open_path(path, OFlags::PATH, Mode::empty(), links)?;
        check_regular(&there)
    }
}

/// Whether something is a regular file.
pub(crate) fn check_regular(file: impl AsFd) -> Result<(), FilesError> {
    match file_type(&fstat(file)?) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(FilesError::NotAFile),
    }
}

/// Whether a file may grow to so many bytes. The kernel would say so too, and then kill us: beyond
/// the limit of a process, a write is answered with a signal.
pub(crate) fn check_size(bytes: u64) -> Result<(), FilesError> {
    match bytes > max_size() {
        true => Err(Errno::FBIG.into()),
        false => Ok(()),
    }
}

/// How large a file may grow.
pub(crate) fn max_size() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}
