//! Copying a directory with everything below it, from descriptor to descriptor.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat};
use rustix::io::Errno;

use crate::FilesError;
use crate::copy::{PERMISSIONS, Place, copy_file, copy_link};
use crate::gaps::Gaps;
use crate::identity::Identity;
use crate::names::Names;

const READ: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// A directory that is being copied.
struct Level {
    source: OwnedFd,
    copy: OwnedFd,
    /// What is still to be copied.
    names: Names,
    /// What the copy's mode will be, if it was made for this. Until then it can be written to.
    mode: Option<Mode>,
}

/// Copies what is in `source` to a directory that is made unless it is there.
pub(crate) fn copy_tree<Fd: AsFd>(
    source: OwnedFd,
    to: Place<'_, Fd>,
    max_depth: usize,
    gaps: &Gaps,
) -> Result<(), FilesError> {
    let first = Level::open(source, to, OFlags::empty(), gaps)?;
    // However the tree changes meanwhile, the copy isn't copied.
    let whole = Identity::of(&first.copy)?;
    let mut levels = vec![first];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.names.next(&level.source)? else {
            level.finish()?;
            levels.pop();
            continue;
        };
        let from = (&level.source, name.text.as_os_str());
        let to = (&level.copy, name.text.as_os_str());
        match name.kind {
            FileType::RegularFile => copy_file(from, to, AtFlags::SYMLINK_NOFOLLOW)?,
            FileType::Symlink => copy_link(from, to)?,
            FileType::Directory => {
                let source = openat(from.0, from.1, READ | OFlags::NOFOLLOW, Mode::empty())?;
                if Identity::of(&source)? == whole {
                    return Err(FilesError::CopyIntoItself);
                }
                let below = Level::open(source, to, OFlags::NOFOLLOW, gaps)?;
                levels.push(below);
                if levels.len() > max_depth {
                    return Err(FilesError::TooDeep { limit: max_depth });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl Level {
    fn open<Fd: AsFd>(
        source: OwnedFd,
        (place, name): Place<'_, Fd>,
        flags: OFlags,
        gaps: &Gaps,
    ) -> Result<Self, FilesError> {
        let mode = Mode::from_raw_mode(fstat(&source)?.st_mode & PERMISSIONS);
        let mode = match mkdirat(place, name, mode | Mode::RWXU) {
            Ok(()) => Some(mode),
            Err(Errno::EXIST) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Level {
            names: Names::of(&source, gaps)?,
            copy: openat(place, name, READ | flags, Mode::empty())?,
            source,
            mode,
        })
    }

    fn finish(&self) -> Result<(), FilesError> {
        match self.mode {
            Some(mode) => Ok(fchmod(&self.copy, mode)?),
            None => Ok(()),
        }
    }
}
