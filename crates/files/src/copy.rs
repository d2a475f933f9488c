//! Copies files, symbolic links and directories.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use outpost_types::{FsCopyParams, Symlinks};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, ftruncate, mkdirat, openat,
    readlinkat, statat, symlinkat,
};
use rustix::io::Errno;

use crate::directory_entries::{HiddenNames, Names};
use crate::path_masks::PathMasks;
use crate::procfs::check_not_own;
use crate::regular::{NO_SIDE_EFFECTS, check_regular, check_size, max_size};
use crate::resolve::{Identity, PATH_DIRECTORY, file_type, if_exists, open_following};
use crate::{Files, FilesError};

/// The mode bits that a copy keeps. Set-user-ID and set-group-ID would grant the rights of the copy's
/// owner, who may not be the owner of the original.
pub(crate) const PERMISSIONS: u32 = 0o777;

impl Files {
    /// Copies a file, a symbolic link, or with `recursive` a directory and its content. Modes are kept,
    /// links stay links. An existing destination file keeps its inode and gets the new content.
    pub(crate) fn copy(&self, masks: &PathMasks, op: &FsCopyParams) -> Result<(), FilesError> {
        let (omitted, destination) = (masks.omitted_names(), op.destination_path.as_path());
        let is_placeholder = masks.is_placeholder(destination, Symlinks::Follow);
        self.copy_without(op, &omitted)?;
        // The placeholder may have been removed while it was still empty.
        if is_placeholder && !self.claim_placeholder(destination, Symlinks::Follow)? {
            self.copy_without(op, &omitted)?;
        }
        Ok(())
    }

    /// Copies all but the `omitted` names.
    fn copy_without(&self, op: &FsCopyParams, omitted: &HiddenNames) -> Result<(), FilesError> {
        let (source, destination) = (op.source_path.as_path(), op.destination_path.as_path());
        let to = (CWD, destination.as_os_str());
        let stat = statat(CWD, source, AtFlags::SYMLINK_NOFOLLOW)?;
        match file_type(&stat) {
            FileType::RegularFile => copy_file((CWD, source.as_os_str()), to, AtFlags::empty()),
            FileType::Symlink => copy_link((CWD, source.as_os_str()), to),
            FileType::Directory if !op.recursive => Err(FilesError::CopyNeedsRecursive),
            FileType::Directory => self.copy_directory(source, destination, omitted),
            _ => Err(FilesError::CopyUnsupported),
        }
    }

    fn copy_directory(
        &self,
        source: &Path,
        destination: &Path,
        omitted: &HiddenNames,
    ) -> Result<(), FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let source = self.open_path(source, flags, Mode::empty(), Symlinks::Follow)?;
        check_outside(&source, destination)?;
        let parent = destination.parent().unwrap_or(destination);
        std::fs::create_dir_all(parent)?;
        copy_tree(
            source,
            (CWD, destination.as_os_str()),
            self.limits.copy_depth,
            omitted,
        )
    }
}

/// A name in an open directory.
type EntryIn<'a> = (BorrowedFd<'a>, &'a OsStr);

/// Opens an entry, unless it is a file of this process in a procfs. `flags` tells whether the entry is a
/// path whose symbolic links are followed, except those of a procfs, or a name in a directory.
fn open_entry(
    (directory, name): EntryIn<'_>,
    open_flags: OFlags,
    mode: Mode,
    flags: AtFlags,
) -> Result<OwnedFd, FilesError> {
    if flags.contains(AtFlags::SYMLINK_NOFOLLOW) {
        return check_not_own(openat(directory, name, open_flags, mode)?);
    }
    open_following(Path::new(name), open_flags, mode)
}

/// Copies a regular file. `flags` tells whether a symbolic link at the destination is followed.
fn copy_file(from: EntryIn<'_>, to: EntryIn<'_>, flags: AtFlags) -> Result<(), FilesError> {
    let source_flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | NO_SIDE_EFFECTS;
    let source = open_entry(from, source_flags, Mode::empty(), flags)?;
    let stat = fstat(&source)?;
    if file_type(&stat) != FileType::RegularFile {
        return Err(FilesError::CopyUnsupported);
    }
    check_size(u64::try_from(stat.st_size).unwrap_or(0))?;
    let limit = max_size();
    let mode = Mode::from_raw_mode(stat.st_mode & PERMISSIONS);
    let Some(target) = open_target(to, &stat, mode, flags)? else {
        return Ok(());
    };
    let (mut source, mut target) = (File::from(source), File::from(target));
    let copied = std::io::copy(&mut source.by_ref().take(limit), &mut target)?;
    // The source may have grown meanwhile. Writing beyond the limit would raise SIGXFSZ.
    if copied == limit && source.read(&mut [0])? != 0 {
        return Err(Errno::FBIG.into());
    }
    fchmod(&target, mode)?;
    Ok(())
}

/// Opens and truncates the destination; none if it is the source itself.
fn open_target(
    (directory, name): EntryIn<'_>,
    source: &Stat,
    mode: Mode,
    flags: AtFlags,
) -> Result<Option<OwnedFd>, FilesError> {
    if let Some(existing) = if_exists(statat(directory, name, flags))? {
        if Identity::from(&existing) == Identity::from(source) {
            return Ok(None);
        }
        match file_type(&existing) {
            FileType::RegularFile | FileType::Directory | FileType::Symlink => {}
            _ => return Err(FilesError::NotRegularFile { path: None }),
        }
    }
    let mut target_flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | NO_SIDE_EFFECTS;
    if flags.contains(AtFlags::SYMLINK_NOFOLLOW) {
        target_flags |= OFlags::NOFOLLOW;
    }
    let target = open_entry((directory, name), target_flags, mode | Mode::WUSR, flags)?;
    check_regular(&target)?;
    if Identity::of(&target)? == Identity::from(source) {
        return Ok(None);
    }
    ftruncate(&target, 0)?;
    Ok(Some(target))
}

/// Creates a symbolic link with the same target text.
fn copy_link(from: EntryIn<'_>, to: EntryIn<'_>) -> Result<(), FilesError> {
    let text = readlinkat(from.0, from.1, Vec::new())?;
    Ok(symlinkat(text, to.0, to.1)?)
}

/// Checks that the destination is not inside the source, whatever links lead there: no directory from
/// the destination up to the root may be the source.
fn check_outside(source: &OwnedFd, destination: &Path) -> Result<(), FilesError> {
    let original = Identity::of(source)?;
    let nearest = destination
        .ancestors()
        .find_map(|path| openat(CWD, path, PATH_DIRECTORY, Mode::empty()).ok());
    let Some(mut directory) = nearest else {
        return Ok(());
    };
    let mut identity = Identity::of(&directory)?;
    loop {
        if identity == original {
            return Err(FilesError::CopyIntoItself);
        }
        directory = openat(&directory, c"..", PATH_DIRECTORY, Mode::empty())?;
        let parent = Identity::of(&directory)?;
        // The root is its own parent.
        if parent == identity {
            return Ok(());
        }
        identity = parent;
    }
}

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
fn copy_tree(
    source: OwnedFd,
    to: EntryIn<'_>,
    max_depth: usize,
    omitted: &HiddenNames,
) -> Result<(), FilesError> {
    let first = PendingDirectory::open(source, to, AtFlags::empty(), omitted)?;
    // Stop if a change of the tree leads into the copy.
    let copy_root = Identity::of(&first.copy)?;
    let mut levels = vec![first];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.names.next(&level.source)? else {
            level.finish()?;
            levels.pop();
            continue;
        };
        let from = (level.source.as_fd(), name.text.as_os_str());
        let to = (level.copy.as_fd(), name.text.as_os_str());
        match name.kind {
            FileType::RegularFile => copy_file(from, to, AtFlags::SYMLINK_NOFOLLOW)?,
            FileType::Symlink => copy_link(from, to)?,
            FileType::Directory => {
                let source = openat(from.0, from.1, READ | OFlags::NOFOLLOW, Mode::empty())?;
                let source = check_not_own(source)?;
                if Identity::of(&source)? == copy_root {
                    return Err(FilesError::CopyIntoItself);
                }
                let below = PendingDirectory::open(source, to, AtFlags::SYMLINK_NOFOLLOW, omitted)?;
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
    fn open(
        source: OwnedFd,
        (directory, name): EntryIn<'_>,
        flags: AtFlags,
        omitted: &HiddenNames,
    ) -> Result<Self, FilesError> {
        let mode = Mode::from_raw_mode(fstat(&source)?.st_mode & PERMISSIONS);
        let mode = match mkdirat(directory, name, mode | Mode::RWXU) {
            Ok(()) => Some(mode),
            Err(Errno::EXIST) => None,
            Err(error) => return Err(error.into()),
        };
        let mut copy_flags = READ;
        if flags.contains(AtFlags::SYMLINK_NOFOLLOW) {
            copy_flags |= OFlags::NOFOLLOW;
        }
        Ok(PendingDirectory {
            names: Names::new(&source, omitted)?,
            copy: open_entry((directory, name), copy_flags, Mode::empty(), flags)?,
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    /// As if the link had been created after the paths of the operation were checked.
    #[test]
    fn procfs_link_to_an_open_file_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (source, open) = (
            directory.path().join("source"),
            directory.path().join("open"),
        );
        std::fs::write(&source, "new").unwrap();
        std::fs::write(&open, "original").unwrap();
        let file = File::open(&open).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &link).unwrap();
        let copied = copy_file(
            (CWD, source.as_os_str()),
            (CWD, link.as_os_str()),
            AtFlags::empty(),
        );
        assert!(matches!(copied, Err(FilesError::ProcfsLink)), "{copied:?}");
        assert_eq!(std::fs::read_to_string(&open).unwrap(), "original");
    }
}
