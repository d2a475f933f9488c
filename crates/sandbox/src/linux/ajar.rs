//! A directory of our own, opened for a moment.
//!
//! Whoever may write a directory may close it, and what we have put there has to be taken away again
//! all the same.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::Mode;

/// A directory in which we may do what its owner may. It is closed again when this is dropped, if
/// it was.
#[derive(Debug)]
pub(super) struct Ajar<'a> {
    directory: &'a OwnedFd,
    /// What it has to be again, and what it is meanwhile.
    modes: Option<(Mode, Mode)>,
}

impl<'a> Ajar<'a> {
    /// Somebody else's is left alone, and so is one that can't be opened: what is tried there says
    /// why it fails.
    pub(super) fn new(directory: &'a OwnedFd) -> Self {
        let needed = Mode::WUSR | Mode::XUSR;
        let own = rustix::process::geteuid().as_raw();
        let modes = rustix::fs::fstat(directory)
            .ok()
            .filter(|found| found.st_uid == own)
            .map(|found| Mode::from_raw_mode(found.st_mode))
            .filter(|mode| !mode.contains(needed))
            .map(|mode| (mode, mode | needed))
            .filter(|(_, meanwhile)| change(directory, *meanwhile));
        Ajar { directory, modes }
    }
}

impl Drop for Ajar<'_> {
    fn drop(&mut self) {
        let Some((mode, meanwhile)) = self.modes else {
            return;
        };
        let found = rustix::fs::fstat(self.directory);
        // Its owner may have changed it once more, and knows best.
        if found.is_ok_and(|found| Mode::from_raw_mode(found.st_mode) == meanwhile) {
            change(self.directory, mode);
        }
    }
}

/// By its descriptor, which may be one that only names it.
fn change(directory: &OwnedFd, mode: Mode) -> bool {
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    rustix::fs::chmod(path, mode).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use crate::linux::place;

    #[test]
    fn it_is_as_it_was_afterwards() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        let opened = place::follow(&folder).map_err(|_| ()).expect("it opens");
        let mode = || folder.metadata().expect("it is there").mode() & 0o7777;
        for (closed, meanwhile) in [(0o000, 0o300), (0o1555, 0o1755), (0o711, 0o711)] {
            let permissions = std::fs::Permissions::from_mode(closed);
            std::fs::set_permissions(&folder, permissions).expect("it is ours");
            let ajar = Ajar::new(&opened);
            assert_eq!(mode(), meanwhile);
            drop(ajar);
            assert_eq!(mode(), closed);
        }
    }
}
