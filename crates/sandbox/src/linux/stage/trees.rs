//! Pieces of a file tree, as they are taken from one place and put in another.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};

use crate::linux::place;
use crate::linux::sys;

/// What is mounted of the host gives nobody another's rights, and its devices are none.
pub(super) const PLAIN: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
pub(super) const CLOSED: MountAttrFlags = PLAIN.union(MountAttrFlags::MOUNT_ATTR_RDONLY);

pub(super) const OPENED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What is at a path of the host with all that is mounted below it, as it is to be seen from now on.
pub(super) fn take(
    host: &OwnedFd,
    path: &Path,
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let host = rustix::io::fcntl_dupfd_cloexec(host, 0)?;
    let found = place::follow_in(host, path)?;
    let tree = clone(&found, OpenTreeFlags::AT_RECURSIVE)?;
    sys::set_mount(&tree, attributes, true)?;
    Ok(tree)
}

pub(super) fn clone(from: &OwnedFd, which: OpenTreeFlags) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    rustix::mount::open_tree(from, "", flags | which)
}

pub(super) fn attach(tree: &OwnedFd, spot: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, "", spot, "", flags)
}

pub(super) fn make(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let system = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        rustix::mount::fsconfig_set_string(system.as_fd(), *name, *value)?;
    }
    rustix::mount::fsconfig_create(system.as_fd())?;
    rustix::mount::fsmount(system.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// What isn't a directory, under a new name in one of ours.
pub(super) fn put_file(directory: &OwnedFd, name: &OsStr, tree: &OwnedFd) -> Result<(), Errno> {
    make_file(directory, name)?;
    let spot = rustix::fs::openat(directory, name, OPENED, Mode::empty())?;
    attach(tree, &spot)
}

pub(super) fn make_file(directory: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o444)).map(drop)
}

pub(super) fn kind(tree: &OwnedFd) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode))
}
