//! Watches missing paths until one of them may exist.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{ReadFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, FileType, statat, statfs};
use rustix::io::Errno;

use super::inotify::{Descriptor, Event, Inotify, NAME_CHANGES, SELF_GONE, THROUGH};
use super::{WatchError, WatchKey};
use crate::resolve::file_type;

/// The largest number of missing paths.
const MAX_PATHS: usize = 64;
/// The largest number of components of a path.
const MAX_COMPONENTS: usize = 64;
/// The largest number of existing directories that the paths lead through.
const MAX_DIRECTORIES: usize = 64;
/// The longest name of a file.
const MAX_NAME_BYTES: usize = 255;

/// Local file systems, on which inotify reports every change: the magic numbers of `statfs`. Network
/// file systems are changed by other hosts, and kernel file systems such as procfs by the kernel.
const LOCAL_FILE_SYSTEMS: [u64; 17] = [
    0xEF53,      // ext2, ext3, ext4
    0x0102_1994, // tmpfs, devtmpfs
    0x8584_58F6, // ramfs
    0x9123_683E, // btrfs
    0x5846_5342, // xfs
    0x794C_7630, // overlayfs
    0xF2F5_2010, // f2fs
    0x2FC1_2FC1, // zfs
    0xCA45_1A4E, // bcachefs
    0x7371_7368, // squashfs
    0xE0F5_E1E2, // erofs
    0x4D44,      // vfat
    0x2011_BAB0, // exfat
    0x7366_746E, // ntfs3
    0x3153_464A, // jfs
    0x3434,      // nilfs
    0x9660,      // iso9660
];

/// A request to watch missing paths until one of them exists, and one existing path until it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingPathsRequest {
    /// Increases with each request of a client.
    pub id: u64,
    /// The missing paths; `None` for a path that cannot exist on this host.
    pub missing: Vec<Option<PathBuf>>,
    /// A path that exists.
    pub present: Option<Option<PathBuf>>,
}

/// The names to watch in the directories that lead to some missing paths.
#[derive(Debug)]
pub(super) struct MissingWatch {
    pub(super) id: u64,
    key: WatchKey,
    /// Names in watched directories whose creation, removal or renaming fires.
    names: HashSet<(Descriptor, OsString)>,
    /// Watched files whose own change fires.
    own: HashSet<Descriptor>,
    /// The present file, whose content counts too.
    present: Option<Descriptor>,
}

/// An error without details: the paths cannot be watched. Clients learn only that the watch failed.
struct Unwatchable;

impl From<WatchError> for Unwatchable {
    fn from(_: WatchError) -> Self {
        Unwatchable
    }
}

impl MissingWatch {
    /// Watches everything that leads to the paths; none if that is not possible.
    pub(super) fn arm(
        inotify: &mut Inotify,
        paths: &MissingPathsRequest,
        key: WatchKey,
    ) -> Option<Self> {
        let mut watch = MissingWatch {
            id: paths.id,
            key,
            names: HashSet::new(),
            own: HashSet::new(),
            present: None,
        };
        match watch.add_all(inotify, paths) {
            Ok(()) => Some(watch),
            Err(Unwatchable) => {
                watch.release(inotify);
                None
            }
        }
    }

    fn add_all(
        &mut self,
        inotify: &mut Inotify,
        paths: &MissingPathsRequest,
    ) -> Result<(), Unwatchable> {
        let missing: Option<Vec<&PathBuf>> = paths.missing.iter().map(Option::as_ref).collect();
        let missing = missing.filter(|paths| (1..=MAX_PATHS).contains(&paths.len()));
        let missing = missing.ok_or(Unwatchable)?;
        let mut directories = HashMap::new();
        for path in missing {
            if self.add_path(inotify, path, &mut directories)?.is_some() {
                return Err(Unwatchable);
            }
        }
        if let Some(present) = &paths.present {
            let path = present.as_ref().ok_or(Unwatchable)?;
            let kind = self.add_path(inotify, path, &mut directories)?;
            let kind = kind.ok_or(Unwatchable)?;
            let events = match kind {
                FileType::Directory => THROUGH,
                _ => THROUGH | WatchFlags::MODIFY,
            };
            let descriptor = inotify.add(path, events, self.key)?;
            self.own.insert(descriptor);
            self.present = Some(descriptor);
        }
        Ok(())
    }

    /// Watches the directories of a path up to the first component that does not exist. Returns the
    /// type of the file, or none if it does not exist.
    ///
    /// A directory is watched before a name in it is looked up, so that no change is lost.
    fn add_path(
        &mut self,
        inotify: &mut Inotify,
        path: &Path,
        directories: &mut HashMap<PathBuf, Descriptor>,
    ) -> Result<Option<FileType>, Unwatchable> {
        let names: Vec<_> = path.iter().skip(1).collect();
        let too_long = |name: &&OsStr| name.as_bytes().len() > MAX_NAME_BYTES;
        if names.len() > MAX_COMPONENTS || names.iter().any(too_long) {
            return Err(Unwatchable);
        }
        let mut directory = PathBuf::from("/");
        let mut kind = FileType::Directory;
        for name in names {
            if kind != FileType::Directory {
                return Err(Unwatchable);
            }
            let descriptor = match directories.get(&directory) {
                Some(descriptor) => *descriptor,
                None => {
                    let descriptor = self.add_directory(inotify, &directory)?;
                    directories.insert(directory.clone(), descriptor);
                    descriptor
                }
            };
            if directories.len() > MAX_DIRECTORIES {
                return Err(Unwatchable);
            }
            self.names.insert((descriptor, name.to_owned()));
            directory.push(name);
            kind = match statat(CWD, &directory, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => file_type(&stat),
                Err(Errno::NOENT) => return Ok(None),
                Err(_) => return Err(Unwatchable),
            };
            if kind == FileType::Symlink {
                return Err(Unwatchable);
            }
        }
        Ok(Some(kind))
    }

    fn add_directory(
        &mut self,
        inotify: &mut Inotify,
        directory: &Path,
    ) -> Result<Descriptor, Unwatchable> {
        let stat = statfs(directory).map_err(|_| Unwatchable)?;
        // The number is signed on some architectures.
        let magic = stat.f_type as u64 & 0xFFFF_FFFF;
        if !LOCAL_FILE_SYSTEMS.contains(&magic) {
            return Err(Unwatchable);
        }
        let descriptor = inotify.add(directory, THROUGH | WatchFlags::ONLYDIR, self.key)?;
        self.own.insert(descriptor);
        Ok(descriptor)
    }

    /// Whether one of the paths may exist after an event, or the present one may have changed.
    pub(super) fn is_fired_by(&self, event: &Event) -> bool {
        let flags = event.flags;
        match &event.name {
            Some(name) => {
                flags.intersects(NAME_CHANGES)
                    && self.names.contains(&(event.descriptor, name.clone()))
            }
            None if self.present == Some(event.descriptor) => {
                flags.intersects(SELF_GONE | ReadFlags::ATTRIB | ReadFlags::MODIFY)
            }
            None => {
                self.own.contains(&event.descriptor)
                    && flags.intersects(SELF_GONE | ReadFlags::ATTRIB)
            }
        }
    }

    pub(super) fn release(self, inotify: &mut Inotify) {
        for descriptor in self.own {
            inotify.release(descriptor, self.key);
        }
    }
}
