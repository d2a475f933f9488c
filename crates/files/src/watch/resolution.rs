//! Finds the file that a path leads to, and watches every directory on the way.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use rustix::fs::inotify::WatchFlags;
use rustix::fs::{AtFlags, CWD, FileType, readlinkat, statat};
use rustix::io::Errno;
use std::os::unix::ffi::OsStringExt as _;

use super::inotify::{CONTENT, Descriptor, Inotify, THROUGH};
use super::{WatchError, WatchKey};
use crate::resolve::file_type;

/// The longest chain of symbolic links, as in the kernel.
const MAX_LINKS: usize = 40;

/// The position of a name in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// The path continues below the name.
    Middle,
    /// The name is the end of the path, or of the link that the path ends with.
    End,
}

/// The file at the end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Differs from that of a file that was there before, even if that had the same inode number.
    /// None if the file itself cannot be watched.
    pub(super) descriptor: Option<Descriptor>,
    pub(super) is_directory: bool,
}

/// The watched directories that a path leads through, and the file at its end.
#[derive(Debug, Default)]
pub(super) struct Resolution {
    pub(super) directories: HashSet<Descriptor>,
    pub(super) names: HashMap<(Descriptor, OsString), Position>,
    pub(super) target: Option<Target>,
    /// The last directory on the way cannot be watched.
    is_blind: bool,
}

impl Resolution {
    /// Resolves a path. Follows the link that it ends with if that has a target or `follow` is set.
    ///
    /// A directory is watched before a name in it is looked up, so that no change is lost.
    pub(super) fn resolve(
        &mut self,
        inotify: &mut Inotify,
        path: &Path,
        follow: bool,
        user: WatchKey,
    ) -> Result<(), WatchError> {
        let mut current = PathBuf::from("/");
        let mut left: VecDeque<OsString> = names(path).map(OsStr::to_owned).collect();
        let mut links = 0;
        let mut kind = FileType::Directory;
        while let Some(name) = left.pop_front() {
            if name == ".." {
                current.pop();
                continue;
            }
            let position = match left.is_empty() {
                true => Position::End,
                false => Position::Middle,
            };
            let directory = current.clone();
            match inotify.add(&directory, THROUGH | WatchFlags::ONLYDIR, user) {
                Ok(descriptor) => {
                    self.directories.insert(descriptor);
                    self.names.insert((descriptor, name.clone()), position);
                    self.is_blind = false;
                }
                Err(error) if is_gone(&error) => return self.check(),
                Err(error) if error.is(Errno::ACCESS) => self.is_blind = true,
                Err(error) => return Err(error),
            }
            current.push(&name);
            kind = match statat(CWD, &current, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => file_type(&stat),
                Err(_) => return self.check(),
            };
            if kind == FileType::Symlink {
                let has_target = statat(CWD, &current, AtFlags::empty()).is_ok();
                links += 1;
                if links > MAX_LINKS || (position == Position::End && !has_target && !follow) {
                    return self.check();
                }
                let Ok(link) = readlinkat(CWD, &current, Vec::new()) else {
                    return self.check();
                };
                let link = PathBuf::from(OsString::from_vec(link.into_bytes()));
                match link.is_absolute() {
                    true => current = PathBuf::from("/"),
                    false => _ = current.pop(),
                }
                for name in names(&link).collect::<Vec<_>>().into_iter().rev() {
                    left.push_front(name.to_owned());
                }
                kind = FileType::Directory;
            } else if kind != FileType::Directory && !left.is_empty() {
                return self.check();
            }
        }
        let is_directory = kind == FileType::Directory;
        let descriptor = match inotify.add(&current, CONTENT, user) {
            Ok(descriptor) => Some(descriptor),
            Err(error) if is_gone(&error) => return self.check(),
            // Changes of a file are also reported by its directory, those in a directory are not.
            Err(error) if error.is(Errno::ACCESS) && !is_directory && !self.is_blind => None,
            Err(error) => return Err(error),
        };
        self.target = Some(Target {
            descriptor,
            is_directory,
        });
        Ok(())
    }

    /// Fails if the appearance of the file would not be noticed.
    fn check(&self) -> Result<(), WatchError> {
        match self.is_blind {
            true => Err(Errno::ACCESS.into()),
            false => Ok(()),
        }
    }
}

/// Whether a path does not lead to a file any more.
pub(super) fn is_gone(error: &WatchError) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP]
        .iter()
        .any(|errno| error.is(*errno))
}

/// The names in a path, with `..`.
fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        Component::ParentDir => Some(OsStr::new("..")),
        _ => None,
    })
}
