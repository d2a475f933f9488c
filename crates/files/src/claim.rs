//! Directories that somebody has put where there was nothing, until one is made there.
//!
//! Who holds a place like that takes it away again, unless its time has changed: then it is somebody
//! else's. While anybody has a lock on it, it stays.

use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, flock, futimens};
use rustix::io::Errno;

use crate::identity::Identity;
use crate::{Files, FilesError, Links};

/// How often one may go just when it is to be kept.
const ATTEMPTS: usize = 64;

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: UTIME_NOW,
};

impl Files {
    /// Makes a directory where one stands that counts as none.
    pub(crate) fn make_held(
        &self,
        path: &Path,
        recursive: bool,
        links: Links,
    ) -> Result<(), FilesError> {
        for _ in 0..ATTEMPTS {
            match self.create_directory(path, recursive, links) {
                Err(error) if error.is(Errno::EXIST) => {}
                made => made?,
            }
            if self.claim(path, links)? {
                return Ok(());
            }
            std::thread::yield_now();
        }
        Err(Errno::BUSY.into())
    }

    /// Makes a directory like any other of one whose place is held. Says whether it is still there.
    pub(crate) fn claim(&self, path: &Path, links: Links) -> Result<bool, FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let open = || match self.open_path(path, flags, Mode::empty(), links) {
            Err(error) if error.is(Errno::NOENT) => Ok(None),
            opened => opened.map(Some),
        };
        let Some(directory) = open()? else {
            return Ok(false);
        };
        // Somebody is just taking it away. Where there are no locks, nobody minds one.
        let lock = flock(&directory, FlockOperation::NonBlockingLockShared);
        if lock == Err(Errno::WOULDBLOCK) {
            return Ok(false);
        }
        let times = Timestamps {
            last_access: NOW,
            last_modification: NOW,
        };
        futimens(&directory, &times)?;
        let there = open()?;
        let there = there.as_ref().map(Identity::of).transpose()?;
        Ok(there == Some(Identity::of(&directory)?))
    }
}
