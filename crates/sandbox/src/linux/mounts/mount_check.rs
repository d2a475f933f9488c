//! Checks inside the sandbox that every mount is the planned mount.
//!
//! Between planning and mounting, a process that was sandboxed earlier may have changed what is at a
//! writable path. The helper compares each mount with the plan before the program runs.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, StatVfsMountFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::layout::{Mount, PlannedMount};
use crate::linux::nofollow::{self, OpenError};

impl PlannedMount {
    /// Fails with `ESTALE` if another mount is at the path.
    pub(in crate::linux) fn check(&self) -> Result<(), Errno> {
        let opened = match nofollow::open(&self.path) {
            Ok(opened) => opened,
            Err(error) if is_inaccessible(&error) => return Ok(()),
            Err(error) => return Err(error.errno),
        };
        if self.matches(&opened)? {
            Ok(())
        } else {
            Err(Errno::STALE)
        }
    }

    fn matches(&self, opened: &OwnedFd) -> Result<bool, Errno> {
        // The directory under the mount may have been renamed and another directory created in its
        // place.
        if !is_mount_root(opened)? {
            return Ok(false);
        }
        let is_read_only = || {
            let stat = rustix::fs::fstatvfs(opened)?;
            Ok::<_, Errno>(stat.f_flag.contains(StatVfsMountFlags::RDONLY))
        };
        let is_planned = || {
            let is = |expected| nofollow::identity(opened) == Ok(expected);
            self.identity.is_none_or(is)
        };
        let stat = rustix::fs::fstat(opened)?;
        Ok(match self.mount {
            Mount::Writable | Mount::Device => is_planned(),
            Mount::Readable => is_planned() && is_read_only()?,
            // An empty, read-only tmpfs.
            Mount::HiddenDirectory | Mount::Traversable | Mount::Empty => {
                let file_system = rustix::fs::fstatfs(opened)?;
                file_system.f_type == TMPFS_MAGIC
                    && Some(stat.st_mode & 0o7777) == self.mount.mode()
                    && is_read_only()?
            }
            // The null device on a mount that forbids opening devices.
            Mount::HiddenFile => {
                FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
                    && stat.st_rdev == rustix::fs::makedev(1, 3)
            }
        })
    }
}

const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Returns whether `opened` is the root of a mount. Kernels before 5.8 don't report it; then the
/// result is true.
fn is_mount_root(opened: &OwnedFd) -> Result<bool, Errno> {
    let statx = match rustix::fs::statx(opened, "", AtFlags::EMPTY_PATH, StatxFlags::empty()) {
        Err(Errno::NOSYS) => return Ok(true),
        statx => statx?,
    };
    let is_reported = statx
        .stx_attributes_mask
        .contains(StatxAttributes::MOUNT_ROOT);
    Ok(!is_reported || statx.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Returns whether the path is behind another user's directory that denies us access. The program
/// can't reach it either: inside the sandbox even root has no capabilities. A directory of our own
/// user doesn't count, since a sandboxed process could have closed it just for this check.
fn is_inaccessible(error: &OpenError) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let directory = error.last_directory.as_ref().map(rustix::fs::fstat);
    error.errno == Errno::ACCESS
        && directory.is_some_and(|stat| stat.is_ok_and(|stat| stat.st_uid != user))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Identity;

    #[test]
    fn directory_without_a_mount_is_rejected() {
        let directory = tempfile::tempdir().expect("create directory");
        let path = directory.path().canonicalize().expect("canonicalize");
        let check = |path: &Path, mount, identity| {
            let path = path.to_owned();
            let planned = PlannedMount {
                path,
                mount,
                identity,
            };
            planned.check()
        };
        assert!(check(&path, Mount::Writable, None).is_err());
        let root = Path::new("/");
        let opened = nofollow::open(root).expect("open");
        let identity = nofollow::identity(&opened).expect("fstat");
        assert!(check(root, Mount::Writable, Some(identity)).is_ok());
        let other = Identity {
            inode: identity.inode + 1,
            ..identity
        };
        assert!(check(root, Mount::Writable, Some(other)).is_err());
        assert!(check(root, Mount::HiddenDirectory, None).is_err());
        assert!(check(root, Mount::HiddenFile, None).is_err());
    }
}
