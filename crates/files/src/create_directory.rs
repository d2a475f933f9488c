//! Making directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;

use crate::resolve::{PLACE, is_link, names_of, open_in, start_of};
use crate::{Files, FilesError, Links};

/// What the process's mask leaves of this.
const MODE: Mode = Mode::from_raw_mode(0o777);

impl Files {
    /// Makes a directory. If `recursive`, those above it that are missing are made too, and one that
    /// is there already is fine.
    pub fn create_directory(
        &self,
        path: &Path,
        recursive: bool,
        links: Links,
    ) -> Result<(), FilesError> {
        match (recursive, links) {
            (true, Links::Follow) => Ok(std::fs::create_dir_all(path)?),
            (true, Links::Refuse) => make_all(path),
            (false, _) => self.make_one(path, links),
        }
    }

    fn make_one(&self, path: &Path, links: Links) -> Result<(), FilesError> {
        let (parent, name) = match self.open_parent(path, links) {
            // The root is there.
            Err(error) if error.is(Errno::BUSY) => return Err(Errno::EXIST.into()),
            opened => opened?,
        };
        match mkdirat(&parent, name, MODE) {
            Err(Errno::EXIST) if links == Links::Refuse && is_link(&parent, name) => {
                Err(FilesError::SymbolicLink)
            }
            made => Ok(made?),
        }
    }
}

/// Goes along the path and makes what is missing, never by way of a link.
fn make_all(path: &Path) -> Result<(), FilesError> {
    let mut place = start_of(path)?;
    for name in names_of(path) {
        place = enter_or_make(&place, name)?;
    }
    Ok(())
}

fn enter_or_make(place: &OwnedFd, name: &OsStr) -> Result<OwnedFd, FilesError> {
    match open_in(place, name, PLACE, Mode::empty()) {
        Err(error) if error.is(Errno::NOENT) && name.as_bytes() != b".." => {}
        opened => return opened,
    }
    match mkdirat(place, name, MODE) {
        // Somebody else was faster.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    open_in(place, name, PLACE, Mode::empty())
}
