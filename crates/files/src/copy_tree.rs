//! Copies a directory and its content, from descriptor to descriptor.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat};
use rustix::io::Errno;

use crate::FilesError;
use crate::copy::{EntryIn, PERMISSIONS, copy_file, copy_link};
use crate::identity::Identity;
use crate::names::Names;
use crate::omitted_names::OmittedNames;

const READ: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// A directory that is being copied.
struct PendingDirectory {
    source: OwnedFd,
    copy: OwnedFd,
    /// The entries that are not copied yet.
    names: Names,
    /// The final mode of the copy, if it was created here. Until then its owner can write to it.
    mode: Option<Mode>,
}

/// Copies the content of `source` to a directory, which is created if it does not exist.
pub(crate) fn copy_tree<Fd: AsFd>(
    source: OwnedFd,
    to: EntryIn<'_, Fd>,
    max_depth: usize,
    omitted: &OmittedNames,
) -> Result<(), FilesError> {
    let first = PendingDirectory::open(source, to, OFlags::empty(), omitted)?;
    // Stop if a change of the tree leads into the copy.
    let copy_root = Identity::of(&first.copy)?;
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
                if Identity::of(&source)? == copy_root {
                    return Err(FilesError::CopyIntoItself);
                }
                let below = PendingDirectory::open(source, to, OFlags::NOFOLLOW, omitted)?;
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

impl PendingDirectory {
    fn open<Fd: AsFd>(
        source: OwnedFd,
        (directory, name): EntryIn<'_, Fd>,
        flags: OFlags,
        omitted: &OmittedNames,
    ) -> Result<Self, FilesError> {
        let mode = Mode::from_raw_mode(fstat(&source)?.st_mode & PERMISSIONS);
        let mode = match mkdirat(directory, name, mode | Mode::RWXU) {
            Ok(()) => Some(mode),
            Err(Errno::EXIST) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(PendingDirectory {
            names: Names::new(&source, omitted)?,
            copy: openat(directory, name, READ | flags, Mode::empty())?,
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
