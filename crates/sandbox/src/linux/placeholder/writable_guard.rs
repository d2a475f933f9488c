//! Temporary write permission for a directory of our own user.
//!
//! A confined process may have removed the write permission of a directory that contains a placeholder.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::Mode;

/// Makes a directory writable for its owner until dropped, then restores its mode.
#[derive(Debug)]
pub(super) struct WritableGuard<'a> {
    directory: &'a OwnedFd,
    /// The original mode and the temporary one, if the mode was changed.
    modes: Option<(Mode, Mode)>,
}

impl<'a> WritableGuard<'a> {
    /// Does nothing for another user's directory, or if `chmod` fails: the operation that follows
    /// reports the error.
    pub(super) fn new(directory: &'a OwnedFd) -> Self {
        let needed = Mode::WUSR | Mode::XUSR;
        let user = rustix::process::geteuid().as_raw();
        let modes = rustix::fs::fstat(directory)
            .ok()
            .filter(|stat| stat.st_uid == user)
            .map(|stat| Mode::from_raw_mode(stat.st_mode))
            .filter(|mode| !mode.contains(needed))
            .map(|mode| (mode, mode | needed))
            .filter(|(_, temporary)| chmod(directory, *temporary));
        WritableGuard { directory, modes }
    }
}

impl Drop for WritableGuard<'_> {
    fn drop(&mut self) {
        let Some((original, temporary)) = self.modes else {
            return;
        };
        let stat = rustix::fs::fstat(self.directory);
        // Another process may have changed the mode meanwhile; then that mode stays.
        if stat.is_ok_and(|stat| Mode::from_raw_mode(stat.st_mode) == temporary) {
            chmod(self.directory, original);
        }
    }
}

/// Changes the mode through `/proc`, because `fchmod` fails for descriptors opened with `O_PATH`.
fn chmod(directory: &OwnedFd, mode: Mode) -> bool {
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    rustix::fs::chmod(path, mode).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use crate::linux::nofollow;

    #[test]
    fn mode_is_restored_on_drop() {
        let directory = tempfile::tempdir().expect("create directory");
        let directory = directory.path().canonicalize().expect("canonicalize");
        let opened = nofollow::open(&directory).map_err(|_| ()).expect("open");
        let mode = || directory.metadata().expect("stat").mode() & 0o7777;
        for (original, temporary) in [(0o000, 0o300), (0o1555, 0o1755), (0o711, 0o711)] {
            let permissions = std::fs::Permissions::from_mode(original);
            std::fs::set_permissions(&directory, permissions).expect("chmod");
            let guard = WritableGuard::new(&opened);
            assert_eq!(mode(), temporary);
            drop(guard);
            assert_eq!(mode(), original);
        }
    }
}
