//! File operations.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown as change_owner, symlink};
use std::time::SystemTime;

use rustix::fs::{FileType, Mode, XattrFlags};

pub(crate) fn write(path: &str) -> io::Result<()> {
    OpenOptions::new()
        .append(true)
        .open(path)?
        .write_all(b"changed")
}

pub(crate) fn read(path: &str) -> io::Result<()> {
    File::open(path)?.read(&mut [0; 16]).map(drop)
}

pub(crate) fn create(path: &str) -> io::Result<()> {
    File::create_new(path).map(drop)
}

/// Opens a file for writing without changing it.
pub(crate) fn open_to_write(path: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path).map(drop)
}

pub(crate) fn chmod(path: &str) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(0o640))
}

/// Sets the group that the file already has, which any owner may.
pub(crate) fn chown(path: &str) -> io::Result<()> {
    let group = rustix::process::getgid().as_raw();
    change_owner(path, None, Some(group))
}

/// Sets the times by path, without opening the file.
pub(crate) fn touch(path: &str) -> io::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_err(io::Error::other)?;
    let time = rustix::fs::Timespec {
        tv_sec: now.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    let times = rustix::fs::Timestamps {
        last_access: time,
        last_modification: time,
    };
    let flags = rustix::fs::AtFlags::empty();
    Ok(rustix::fs::utimensat(rustix::fs::CWD, path, &times, flags)?)
}

pub(crate) fn label(path: &str) -> io::Result<()> {
    let flags = XattrFlags::empty();
    Ok(rustix::fs::setxattr(path, "user.outpost", b"x", flags)?)
}

pub(crate) fn link_and_write(from: &str, to: &str) -> io::Result<()> {
    std::fs::hard_link(from, to)?;
    write(to)
}

pub(crate) fn symlink_and_write(from: &str, to: &str) -> io::Result<()> {
    symlink(from, to)?;
    write(to)
}

/// Creates a null device.
pub(crate) fn make_device(path: &str) -> io::Result<()> {
    let device = rustix::fs::makedev(1, 3);
    let mode = Mode::from_raw_mode(0o600);
    Ok(rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        FileType::CharacterDevice,
        mode,
        device,
    )?)
}
