//! Detached mounts as file descriptors: `open_tree`, `fsmount` and `move_mount`.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};

use crate::linux::nofollow;
use crate::linux::sys;

/// Attributes of every mount: set-user-ID bits are ignored and devices can't be opened.
pub(super) const NOSUID_NODEV: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
pub(super) const READ_ONLY: MountAttrFlags = NOSUID_NODEV.union(MountAttrFlags::MOUNT_ATTR_RDONLY);

pub(super) const PATH_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Clones the host's tree at `path` with all mounts below it, and sets `attributes` on all of them.
pub(super) fn clone_host(
    host: &OwnedFd,
    path: &Path,
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let host = rustix::io::fcntl_dupfd_cloexec(host, 0)?;
    let source = nofollow::open_in(host, path)?;
    let tree = clone(&source, OpenTreeFlags::AT_RECURSIVE)?;
    sys::set_mount_attributes(&tree, attributes, true)?;
    Ok(tree)
}

/// Clones a mount.
pub(super) fn clone(source: &OwnedFd, flags: OpenTreeFlags) -> Result<OwnedFd, Errno> {
    let common = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    rustix::mount::open_tree(source, "", common | flags)
}

/// Attaches a detached mount at `mount_point`.
pub(super) fn attach(mount: &OwnedFd, mount_point: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, "", mount_point, "", flags)
}

/// Creates a detached mount of a new file system.
pub(super) fn create(
    file_system: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(file_system, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        rustix::mount::fsconfig_set_string(context.as_fd(), *name, *value)?;
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Attaches the mount of a file under a new name in `directory`.
pub(super) fn attach_file(directory: &OwnedFd, name: &OsStr, mount: &OwnedFd) -> Result<(), Errno> {
    create_file(directory, name)?;
    let mount_point = rustix::fs::openat(directory, name, PATH_FLAGS, Mode::empty())?;
    attach(mount, &mount_point)
}

/// Creates an empty file as a mount point.
pub(super) fn create_file(directory: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o444)).map(drop)
}

pub(super) fn is_directory(mount: &OwnedFd) -> Result<bool, Errno> {
    let mode = rustix::fs::fstat(mount)?.st_mode;
    Ok(FileType::from_raw_mode(mode) == FileType::Directory)
}
