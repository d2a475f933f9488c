//! Paths that are followed through no link, and what has to stand at them inside.
//!
//! A plan is made first and mounted later, when every path is followed once more. What may be written
//! can be changed in between by a process that was confined before: a directory becomes a link to
//! another one. So a plan says which thing was at each path, and the inner stage compares before there
//! is a program.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatVfsMountFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use crate::Identity;

/// A path that could not be followed to its end.
#[derive(Debug)]
pub(crate) struct Stopped {
    errno: Errno,
    /// The last directory that was reached.
    at: Option<OwnedFd>,
}

impl From<Stopped> for Errno {
    fn from(stopped: Stopped) -> Self {
        stopped.errno
    }
}

const ANY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens an absolute path for nothing but to name it. A link on the way is an error, and so is one
/// at its end.
pub(crate) fn follow(path: &Path) -> Result<OwnedFd, Stopped> {
    let (errno, at) = match root() {
        Ok(root) => return follow_in(root, path),
        Err(errno) => (errno, None),
    };
    Err(Stopped { errno, at })
}

/// What is the root now.
pub(super) fn root() -> Result<OwnedFd, Errno> {
    rustix::fs::open("/", ANY | OFlags::DIRECTORY, Mode::empty())
}

/// The same where something else is the root, or was.
pub(super) fn follow_in(root: OwnedFd, path: &Path) -> Result<OwnedFd, Stopped> {
    let stop = |errno, at| Stopped { errno, at };
    let mut here = root;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let name = match part {
            Component::Normal(name) => name,
            Component::ParentDir => return Err(stop(Errno::INVAL, Some(here))),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
        };
        let flags = match parts.peek() {
            Some(_) => ANY | OFlags::DIRECTORY,
            None => ANY,
        };
        here = match rustix::fs::openat(&here, name, flags, Mode::empty()) {
            Ok(next) => next,
            Err(errno) => return Err(stop(errno, Some(here))),
        };
    }
    match rustix::fs::fstat(&here) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => {
            Err(stop(Errno::LOOP, None))
        }
        Ok(_) => Ok(here),
        Err(errno) => Err(stop(errno, None)),
    }
}

/// Which thing that is.
pub(crate) fn identity(opened: &OwnedFd) -> Result<Identity, Errno> {
    let found = rustix::fs::fstat(opened)?;
    Ok(Identity {
        device: found.st_dev,
        inode: found.st_ino,
    })
}

/// A path inside, and what has to stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) stands: Stands,
}

/// What stands at a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// Something of the host's: this very thing, where it is known which.
    Host {
        identity: Option<Identity>,
        read_only: bool,
    },
    /// An empty file system with this mode.
    Nothing { mode: u32 },
    /// A device that can't be opened.
    Null,
}

impl Place {
    /// Whether it is so.
    pub(super) fn check(&self) -> io::Result<()> {
        let found = match follow(&self.path) {
            Ok(found) => found,
            Err(stopped) if is_closed(&stopped) => return Ok(()),
            Err(stopped) => return Err(stopped.errno.into()),
        };
        match self.is(&found)? {
            true => Ok(()),
            false => Err(Errno::STALE.into()),
        }
    }

    fn is(&self, found: &OwnedFd) -> Result<bool, Errno> {
        // Somebody may have moved what it was mounted over, and put things back since.
        if !is_mount(found)? {
            return Ok(false);
        }
        let read_only = || {
            let system = rustix::fs::fstatvfs(found)?;
            Ok::<_, Errno>(system.f_flag.contains(StatVfsMountFlags::RDONLY))
        };
        let of = rustix::fs::fstat(found)?;
        Ok(match self.stands {
            Stands::Host {
                identity: known,
                read_only: closed,
            } => {
                known.is_none_or(|known| identity(found) == Ok(known)) && (!closed || read_only()?)
            }
            Stands::Nothing { mode } => {
                let system = rustix::fs::fstatfs(found)?;
                system.f_type == TMPFS && of.st_mode & 0o7777 == mode && read_only()?
            }
            Stands::Null => {
                FileType::from_raw_mode(of.st_mode) == FileType::CharacterDevice
                    && of.st_rdev == rustix::fs::makedev(1, 3)
            }
        })
    }
}

const TMPFS: i64 = 0x0102_1994;

/// Whether something is mounted right there. Kernels before 5.8 don't tell.
fn is_mount(opened: &OwnedFd) -> Result<bool, Errno> {
    let told = rustix::fs::statx(opened, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
    let told = match told {
        Err(Errno::NOSYS) => return Ok(true),
        told => told?,
    };
    let known = told
        .stx_attributes_mask
        .contains(StatxAttributes::MOUNT_ROOT);
    Ok(!known || told.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Whether it is a directory of somebody else's that lets us no further. Root has no capabilities
/// inside, and what it can't get at there it needn't compare. One of our own may have been closed
/// for just this moment.
fn is_closed(stopped: &Stopped) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let at = stopped.at.as_ref().map(rustix::fs::fstat);
    stopped.errno == Errno::ACCESS && at.is_some_and(|at| at.is_ok_and(|at| at.st_uid != own))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        std::fs::create_dir_all(folder.join("a/b")).expect("folders");
        symlink("a", folder.join("link")).expect("a link");
        let opened = follow(&folder.join("a/b")).expect("it is followed");
        let met = folder.join("a/b").metadata().expect("it is there");
        let inode = std::os::unix::fs::MetadataExt::ino(&met);
        assert_eq!(identity(&opened).expect("it is told").inode, inode);
        for (path, errno) in [
            ("link", Errno::LOOP),
            ("link/b", Errno::NOTDIR),
            ("a/c", Errno::NOENT),
            ("a/../a", Errno::INVAL),
        ] {
            let stopped = follow(&folder.join(path)).expect_err(path);
            assert_eq!(stopped.errno, errno, "{path}");
        }
    }

    #[test]
    fn what_is_no_mount_is_not_in_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().canonicalize().expect("it is there");
        let host = |read_only, identity| Stands::Host {
            identity,
            read_only,
        };
        let check = |path: &Path, stands| {
            let path = path.to_owned();
            Place { path, stands }.check()
        };
        assert!(check(&path, host(false, None)).is_err());
        let root = Path::new("/");
        let known = identity(&follow(root).expect("it is there")).expect("it is told");
        assert!(check(root, host(false, Some(known))).is_ok());
        let other = Identity {
            inode: known.inode + 1,
            ..known
        };
        assert!(check(root, host(false, Some(other))).is_err());
        assert!(check(root, Stands::Nothing { mode: 0 }).is_err());
        assert!(check(root, Stands::Null).is_err());
    }
}
