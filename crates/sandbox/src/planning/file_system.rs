//! The file system interface of planning, and the file system of this host.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use rustix::{fs::Access, io::Errno};

use crate::{Identity, linux::nofollow};

/// The queries of planning to a file system.
pub trait FileSystemView {
    /// Returns what is at a path, without following a symbolic link at its end. The parent directories
    /// must not be links.
    fn look(&self, path: &Path) -> io::Result<PathKind>;

    /// Returns the identity of the file at a path, if the view knows identities. A symbolic link in any
    /// component is an error.
    fn identify(&self, path: &Path) -> io::Result<Option<Identity>>;

    /// Lists up to `at_most` names in a directory, each with whether it is a directory.
    fn list(&self, directory: &Path, at_most: usize) -> io::Result<Vec<(OsString, bool)>>;

    /// Returns whether the server's user owns a directory, so that its processes can change its mode.
    fn is_ours(&self, directory: &Path) -> bool;

    /// Returns who may have created the symbolic link at a path.
    fn link_creator(&self, link: &Path) -> io::Result<LinkCreator>;

    /// Returns when the file at a path was last created, renamed or changed (its `ctime`), without following
    /// a symbolic link.
    fn change_time(&self, path: &Path) -> io::Result<SystemTime>;

    /// Returns the current time, for the limit of a scan.
    fn now(&self) -> Instant;
}

/// The kind of file at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A directory.
    Directory,
    /// A symbolic link with its target.
    Link(PathBuf),
    /// Any other file.
    File,
    /// Nothing.
    Absent,
}

/// The user who may have created a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkCreator {
    /// The server's user, whose processes can create or replace it.
    OurUser,
    /// Another user, in a directory where everybody can create links.
    OtherUser,
    /// The owner of a directory that the server's user can't change.
    Owner,
}

/// The file system of this host, as the calling process sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostFileSystem;

impl FileSystemView for HostFileSystem {
    fn look(&self, path: &Path) -> io::Result<PathKind> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found.file_type(),
            Err(error) if is_absence(&error) => return Ok(PathKind::Absent),
            Err(error) => return Err(error),
        };
        if found.is_symlink() {
            return fs::read_link(path).map(PathKind::Link);
        }
        Ok(if found.is_dir() {
            PathKind::Directory
        } else {
            PathKind::File
        })
    }

    fn identify(&self, path: &Path) -> io::Result<Option<Identity>> {
        let opened = nofollow::open(path).map_err(Errno::from)?;
        Ok(Some(nofollow::identity(&opened)?))
    }

    fn list(&self, directory: &Path, at_most: usize) -> io::Result<Vec<(OsString, bool)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)?.take(at_most) {
            let entry = entry?;
            // Some file systems need a `stat` for the type, which fails in a directory without search
            // permission.
            let is_directory = match entry.file_type() {
                Ok(kind) => kind.is_dir(),
                Err(error) if is_absence(&error) => continue,
                Err(error) => return Err(error),
            };
            found.push((entry.file_name(), is_directory));
        }
        Ok(found)
    }

    fn is_ours(&self, directory: &Path) -> bool {
        let own = rustix::process::geteuid().as_raw();
        // A directory that was removed may be created again by our user.
        fs::symlink_metadata(directory).map_or(true, |found| found.uid() == own)
    }

    /// Another user's link is judged like the kernel does with `fs.protected_symlinks`, see proc(5).
    fn link_creator(&self, link: &Path) -> io::Result<LinkCreator> {
        let found = fs::symlink_metadata(link)?;
        let directory = link.parent().unwrap_or(link);
        let parent = fs::symlink_metadata(directory)?;
        let own = rustix::process::geteuid().as_raw();
        let is_shared = parent.mode() & 0o1002 == 0o1002;
        if is_shared && found.uid() != own && found.uid() != parent.uid() {
            return Ok(LinkCreator::OtherUser);
        }
        let is_sticky = parent.mode() & 0o1000 != 0 && own != 0;
        let is_writable = rustix::fs::access(directory, Access::WRITE_OK).is_ok();
        let is_replaceable = is_writable && (!is_sticky || found.uid() == own);
        Ok(if parent.uid() == own || is_replaceable {
            LinkCreator::OurUser
        } else {
            LinkCreator::Owner
        })
    }

    fn change_time(&self, path: &Path) -> io::Result<SystemTime> {
        let found = fs::symlink_metadata(path)?;
        let (seconds, nanoseconds) = (found.ctime().try_into(), found.ctime_nsec().try_into());
        // A time before 1970 is that of a wrong clock.
        let since_epoch = Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0));
        Ok(SystemTime::UNIX_EPOCH + since_epoch)
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}

pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
