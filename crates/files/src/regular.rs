//! Opens regular files and rejects special files.

use std::fs::File;
use std::path::Path;

use outpost_types::Symlinks;
use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::identity::file_type;
use crate::{Files, FilesError};

/// Flags that keep an open from blocking on a FIFO and from acquiring a controlling terminal.
pub(crate) const NO_SIDE_EFFECTS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

impl Files {
    /// Opens a regular file for reading.
    pub(crate) fn open_regular(&self, path: &Path, symlinks: Symlinks) -> Result<File, FilesError> {
        self.check_before_open(path, symlinks)?;
        let file = self.open_path(
            path,
            OFlags::RDONLY | NO_SIDE_EFFECTS,
            Mode::empty(),
            symlinks,
        )?;
        check_regular(&file)?;
        Ok(file.into())
    }

    /// Opens a regular file for writing without truncating it. Creates it if it does not exist.
    pub(crate) fn open_to_write(
        &self,
        path: &Path,
        symlinks: Symlinks,
    ) -> Result<File, FilesError> {
        let flags = OFlags::WRONLY | NO_SIDE_EFFECTS;
        let mode = Mode::from_raw_mode(0o666);
        // In a sticky directory `O_CREAT` on another user's existing file may fail
        // (fs.protected_regular), so try without it first.
        let existing = self
            .check_before_open(path, symlinks)
            .and_then(|()| self.open_path(path, flags, Mode::empty(), symlinks));
        let file = match existing {
            Err(error) if error.is(Errno::NOENT) => {
                self.open_path(path, flags | OFlags::CREATE, mode, symlinks)?
            }
            opened => opened?,
        };
        check_regular(&file)?;
        Ok(file.into())
    }

    /// Checks the file type without opening the file: opening a device can have side effects, and a
    /// socket cannot be opened. The path may be replaced before the open, so the caller checks again.
    fn check_before_open(&self, path: &Path, symlinks: Symlinks) -> Result<(), FilesError> {
        let file = self.open_path(path, OFlags::PATH, Mode::empty(), symlinks)?;
        check_regular(&file)
    }
}

/// Fails unless the file is a regular file.
pub(crate) fn check_regular(file: impl AsFd) -> Result<(), FilesError> {
    match file_type(&fstat(file)?) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(FilesError::NotRegularFile),
    }
}

/// Fails if a file may not grow to this size. A write beyond `RLIMIT_FSIZE` would raise SIGXFSZ, which
/// kills the process.
pub(crate) fn check_size(bytes: u64) -> Result<(), FilesError> {
    if bytes > max_size() {
        return Err(Errno::FBIG.into());
    }
    Ok(())
}

/// The largest size of a file (`RLIMIT_FSIZE`).
pub(crate) fn max_size() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}
