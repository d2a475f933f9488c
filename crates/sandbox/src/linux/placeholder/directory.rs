//! Creates, marks and recognizes one placeholder.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::linux::nofollow;

/// The modification time of placeholders in seconds, in 2012: "OUTP" in ASCII.
const MARK: i64 = 0x4f55_5450;

pub(super) const OPEN_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Returns whether a placeholder is at `path`.
#[must_use]
pub fn is_placeholder(path: &Path) -> bool {
    let Some((parent, name)) = path.parent().zip(path.file_name()) else {
        return false;
    };
    let opened = nofollow::open(parent).map_err(Errno::from);
    let opened =
        opened.and_then(|parent| rustix::fs::openat(parent, name, OPEN_FLAGS, Mode::empty()));
    opened.is_ok_and(|directory| is_marked_and_empty(&directory) == Ok(true))
}

pub(super) fn is_marked_and_empty(directory: &OwnedFd) -> Result<bool, Errno> {
    Ok(is_marked(directory)? && is_empty(directory)?)
}

pub(super) fn is_marked(directory: &OwnedFd) -> Result<bool, Errno> {
    let user = rustix::process::geteuid().as_raw();
    let stat = rustix::fs::fstat(directory)?;
    Ok(stat.st_uid == user && (stat.st_mtime, stat.st_mtime_nsec) == (MARK, 0))
}

/// Returns whether a directory contains nothing but empty placeholders.
pub(super) fn is_empty(directory: &OwnedFd) -> Result<bool, Errno> {
    all_entries(directory, |name| {
        match rustix::fs::openat(directory, name, OPEN_FLAGS, Mode::empty()) {
            Ok(inner) => Ok(is_marked(&inner)? && all_entries(&inner, |_| Ok(false))?),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(false),
            Err(errno) => Err(errno),
        }
    })
}

/// Returns whether a predicate holds for every name in a directory.
fn all_entries(
    directory: &OwnedFd,
    predicate: impl Fn(&CStr) -> Result<bool, Errno>,
) -> Result<bool, Errno> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") && !predicate(name)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Creates a placeholder unless something is at `name`.
///
/// The directory is marked before it gets its name. Otherwise a server killed in between would leave an
/// unmarked directory, which is never removed.
pub(super) fn create(parent: &OwnedFd, name: &Path) -> Result<(), Errno> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    if rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Ok(());
    }
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = PathBuf::from(format!(".outpost-{}-{number}", std::process::id()));
    create_marked(parent, &temporary)?;
    let flags = RenameFlags::NOREPLACE;
    let renamed = rustix::fs::renameat_with(parent, &temporary, parent, name, flags);
    if renamed.is_ok() {
        return Ok(());
    }
    let _ = rustix::fs::unlinkat(parent, &temporary, AtFlags::REMOVEDIR);
    match renamed {
        // The file system doesn't support RENAME_NOREPLACE.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => create_marked(parent, name),
        Err(Errno::EXIST) => Ok(()),
        renamed => renamed,
    }
}

fn create_marked(parent: &OwnedFd, name: &Path) -> Result<(), Errno> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
        Err(Errno::EXIST) => return Ok(()),
        created => created?,
    }
    mark(&rustix::fs::openat(
        parent,
        name,
        OPEN_FLAGS,
        Mode::empty(),
    )?)
}

/// Sets the modification time that identifies a placeholder.
pub(super) fn mark(directory: &OwnedFd) -> Result<(), Errno> {
    let time = Timespec {
        tv_sec: MARK,
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::futimens(directory, &times)
}

/// Takes a shared lock. Returns false while another server is removing the placeholder. On a file system
/// without locks the result is true.
pub(super) fn lock_shared(directory: &OwnedFd) -> bool {
    let operation = FlockOperation::NonBlockingLockShared;
    rustix::fs::flock(directory, operation) != Err(Errno::WOULDBLOCK)
}

/// Returns whether `directory` is at `name` in `parent`.
pub(super) fn is_at(directory: &OwnedFd, parent: &OwnedFd, name: impl AsRef<Path>) -> bool {
    let found = rustix::fs::statat(parent, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW);
    let (Ok(opened), Ok(found)) = (rustix::fs::fstat(directory), found) else {
        return false;
    };
    opened.st_dev == found.st_dev && opened.st_ino == found.st_ino
}

/// The result of an attempt to remove a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// Another server or a living sandbox holds the placeholder.
    Held,
    /// The directory is gone, or it isn't a placeholder any more.
    Done,
}

/// Removes a placeholder if no other process holds it and it is still empty.
pub(super) fn remove(directory: &OwnedFd, parent: &OwnedFd, name: impl AsRef<Path>) -> Removal {
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    if rustix::fs::flock(directory, exclusive) == Err(Errno::WOULDBLOCK) {
        return Removal::Held;
    }
    let name = name.as_ref();
    if is_at(directory, parent, name) && is_marked_and_empty(directory) == Ok(true) {
        // Fails if something was created in it just now; then it stays.
        let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
    }
    Removal::Done
}

/// Makes a directory of our own user writable until dropped, then restores its mode. A sandboxed process
/// may have removed the write permission of a directory that contains a placeholder.
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
