//! Creates directories where the sandbox keeps an empty placeholder directory.
//!
//! The owner of a placeholder removes it, unless its modification time has changed: then it has
//! become a directory of its own. A placeholder with a lock on it is not removed.

use std::path::Path;

use outpost_types::Symlinks;
use rustix::fs::{FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, flock, futimens};
use rustix::io::Errno;

use crate::identity::Identity;
use crate::{Files, FilesError};

/// How often a placeholder may be removed while it is being claimed.
const ATTEMPTS: usize = 64;

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: UTIME_NOW,
};

impl Files {
    /// Creates a directory where there may be a placeholder.
    pub(crate) fn create_over_placeholder(
        &self,
        path: &Path,
        recursive: bool,
        symlinks: Symlinks,
    ) -> Result<(), FilesError> {
        for _ in 0..ATTEMPTS {
            match self.create_directory(path, recursive, symlinks) {
                Err(error) if error.is(Errno::EXIST) => {}
                created => created?,
            }
            if self.claim_placeholder(path, symlinks)? {
                return Ok(());
            }
            std::thread::yield_now();
        }
        Err(Errno::BUSY.into())
    }

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
