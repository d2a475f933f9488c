//! Creates and lists directories.
//!
//! Where the sandbox keeps an empty placeholder directory, the new directory takes its place. The
//! owner of a placeholder removes it, unless its modification time has changed: then it has become a
//! directory of its own. A placeholder with a lock on it is not removed.

use std::ffi::OsStr;
use std::path::Path;

use outpost_types::{
    DirectoryEntry, FsCreateDirectoryParams, FsReadDirectoryParams, FsReadDirectoryResult, Symlinks,
};
use rustix::fd::OwnedFd;
use rustix::fs::{
    FileType, FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, flock, futimens,
    mkdirat,
};
use rustix::io::Errno;

use crate::directory_entries::{TakeListingMemory, sorted_names, target_type};
use crate::path_masks::PathMasks;
use crate::resolve::{Identity, PATH_DIRECTORY, component_names, is_link, open_in, open_root};
use crate::{Files, FilesError};

/// The mode of a new directory before the umask is applied.
const MODE: Mode = Mode::from_raw_mode(0o777);

impl Files {
    /// Creates a directory, where there may be a placeholder.
    pub(crate) fn create_directory(
        &self,
        masks: &PathMasks,
        op: &FsCreateDirectoryParams,
    ) -> Result<(), FilesError> {
        if !masks.is_placeholder(op.path.as_path(), op.symlinks) {
            return self.create_unmasked(op);
        }
        for _ in 0..ATTEMPTS {
            match self.create_unmasked(op) {
                Err(error) if error.is(Errno::EXIST) => {}
                created => created?,
            }
            if self.claim_placeholder(op.path.as_path(), op.symlinks)? {
                return Ok(());
            }
            std::thread::yield_now();
        }
        Err(Errno::BUSY.into())
    }

    fn create_unmasked(&self, op: &FsCreateDirectoryParams) -> Result<(), FilesError> {
        let path = op.path.as_path();
        match (op.recursive, op.symlinks) {
            (true, Symlinks::Follow) => Ok(std::fs::create_dir_all(path)?),
            (true, Symlinks::Reject) => create_all(path),
            (false, symlinks) => self.create_one(path, symlinks),
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

/// Opens the path component by component and creates missing components. Rejects symbolic links.
fn create_all(path: &Path) -> Result<(), FilesError> {
    let mut directory = open_root()?;
    for name in component_names(path) {
        directory = open_or_create(&directory, name)?;
    }
    Ok(())
}

fn open_or_create(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, FilesError> {
    match open_in(directory, name, PATH_DIRECTORY, Mode::empty()) {
        Err(error) if error.is(Errno::NOENT) => {}
        opened => return opened,
    }
    match mkdirat(directory, name, MODE) {
        // Another process created it meanwhile.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    open_in(directory, name, PATH_DIRECTORY, Mode::empty())
}

impl Files {
    /// The entries of a directory, sorted by name.
    pub(crate) fn read_directory(
        &self,
        masks: &PathMasks,
        op: &FsReadDirectoryParams,
        take_memory: TakeListingMemory<'_>,
    ) -> Result<FsReadDirectoryResult, FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory =
            self.open_path(op.path.as_path(), flags, Mode::empty(), Symlinks::Follow)?;
        let limit = self.limits.directory_entries;
        let names = sorted_names(&directory, limit, &masks.omitted_names(), take_memory)?;
        let entries = names.into_iter().map(|name| {
            let target = target_type(&directory, &name);
            DirectoryEntry {
                // The wire has no form for other names, but they must show up.
                file_name: name.text.to_string_lossy().into_owned(),
                is_directory: target == Some(FileType::Directory),
                is_file: target == Some(FileType::RegularFile),
                is_broken_link: target.is_none(),
            }
        });
        let entries = entries.filter(|entry| op.broken_links || !entry.is_broken_link);
        Ok(FsReadDirectoryResult {
            entries: entries.collect(),
        })
    }
}

/// How often a placeholder may be removed while it is being claimed.
const ATTEMPTS: usize = 64;

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: UTIME_NOW,
};

impl Files {
    /// Turns a placeholder into an ordinary directory by changing its modification time. Returns
    /// whether the directory is still at this path.
    pub(crate) fn claim_placeholder(
        &self,
        path: &Path,
        symlinks: Symlinks,
    ) -> Result<bool, FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let open = || match self.open_path(path, flags, Mode::empty(), symlinks) {
            Err(error) if error.is(Errno::NOENT) => Ok(None),
            opened => opened.map(Some),
        };
        let Some(directory) = open()? else {
            return Ok(false);
        };
        // Its owner locks it exclusively while removing it. Without support for locks on this file
        // system, no owner holds one.
        let lock = flock(&directory, FlockOperation::NonBlockingLockShared);
        if lock == Err(Errno::WOULDBLOCK) {
            return Ok(false);
        }
        let times = Timestamps {
            last_access: NOW,
            last_modification: NOW,
        };
        futimens(&directory, &times)?;
        let current = open()?;
        let current = current.as_ref().map(Identity::of).transpose()?;
        Ok(current == Some(Identity::of(&directory)?))
    }
}
