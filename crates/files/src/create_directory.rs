//! Creates directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use outpost_types::Symlinks;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;

use crate::resolve::{PATH_DIRECTORY, component_names, is_link, open_in, open_start};
use crate::{Files, FilesError};

/// The mode of a new directory before the umask is applied.
const MODE: Mode = Mode::from_raw_mode(0o777);

impl Files {
    /// Creates a directory. With `recursive`, missing parents are created too, and an existing
    /// directory is no error.
    pub fn create_directory(
        &self,
        path: &Path,
        recursive: bool,
        symlinks: Symlinks,
    ) -> Result<(), FilesError> {
        match (recursive, symlinks) {
            (true, Symlinks::Follow) => Ok(std::fs::create_dir_all(path)?),
            (true, Symlinks::Reject) => create_all(path),
            (false, _) => self.create_one(path, symlinks),
        }
    }

    fn create_one(&self, path: &Path, symlinks: Symlinks) -> Result<(), FilesError> {
        let (parent, name) = match self.open_parent(path, symlinks) {
            // The root directory exists.
            Err(error) if error.is(Errno::BUSY) => return Err(Errno::EXIST.into()),
            opened => opened?,
        };
        match mkdirat(&parent, name, MODE) {
            Err(Errno::EXIST) if symlinks == Symlinks::Reject && is_link(&parent, name) => {
                Err(FilesError::SymbolicLink)
            }
            created => Ok(created?),
        }
    }
}

/// Opens the path component by component and creates the missing ones. Rejects symbolic symlinks.
fn create_all(path: &Path) -> Result<(), FilesError> {
    let mut directory = open_start(path)?;
    for name in component_names(path) {
        directory = open_or_create(&directory, name)?;
    }
    Ok(())
}

fn open_or_create(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, FilesError> {
    match open_in(directory, name, PATH_DIRECTORY, Mode::empty()) {
        Err(error) if error.is(Errno::NOENT) && name.as_bytes() != b".." => {}
        opened => return opened,
    }
    match mkdirat(directory, name, MODE) {
        // Another process created it meanwhile.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    open_in(directory, name, PATH_DIRECTORY, Mode::empty())
}
