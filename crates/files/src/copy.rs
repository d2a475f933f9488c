//! Copying what a path names.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, ftruncate, openat, readlinkat,
    statat, symlinkat,
};
use rustix::io::Errno;

use crate::copy_tree::copy_tree;
use crate::gaps::Gaps;
use crate::identity::{Identity, file_type};
use crate::regular::{CAUTION, check_regular, check_size, max_size};
use crate::resolve::PLACE;
use crate::{Files, FilesError, Links};

/// What a copy keeps of a mode. The other bits would give the copy's owner's rights to everybody,
/// and that may be somebody else than the original's.
pub(crate) const PERMISSIONS: u32 = 0o777;

impl Files {
    /// Copies a file, a link, or a directory with everything below it if `recursive`. Modes are kept,
    /// links stay links; what is copied onto an existing file becomes that file's content.
    pub fn copy(
        &self,
        source: &Path,
        destination: &Path,
        recursive: bool,
    ) -> Result<(), FilesError> {
        self.copy_but(source, destination, recursive, &Gaps::default())
    }

    /// The same without names that are to be left out.
    pub(crate) fn copy_but(
        &self,
        source: &Path,
        destination: &Path,
        recursive: bool,
        gaps: &Gaps,
    ) -> Result<(), FilesError> {
        let stat = statat(CWD, source, AtFlags::SYMLINK_NOFOLLOW)?;
        match file_type(&stat) {
            FileType::RegularFile => {
                let (parent, name) = self.open_parent(source, Links::Follow)?;
                copy_file(
                    (&parent, name),
                    (&CWD, destination.as_os_str()),
                    AtFlags::empty(),
                )
            }
            FileType::Symlink => {
                let (parent, name) = self.open_parent(source, Links::Follow)?;
                copy_link((&parent, name), (&CWD, destination.as_os_str()))
            }
            FileType::Directory if !recursive => Err(FilesError::CopyOfDirectory),
            FileType::Directory => self.copy_directory(source, destination, gaps),
            _ => Err(FilesError::CopyOfSpecial),
        }
    }

    fn copy_directory(
        &self,
        source: &Path,
        destination: &Path,
        gaps: &Gaps,
    ) -> Result<(), FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let source = self.open_path(source, flags, Mode::empty(), Links::Follow)?;
        check_apart(&source, destination)?;
        let parent = destination.parent().unwrap_or(destination);
        std::fs::create_dir_all(parent)?;
        copy_tree(
            source,
            (&CWD, destination.as_os_str()),
            self.limits.copy_depth,
            gaps,
        )
    }
}

/// A name in an open directory.
pub(crate) type Place<'a, Fd> = (&'a Fd, &'a OsStr);

/// Copies a regular file. `flags` says whether a link in the place of the copy is followed.
pub(crate) fn copy_file<A: AsFd, B: AsFd>(
    from: Place<'_, A>,
    to: Place<'_, B>,
    flags: AtFlags,
) -> Result<(), FilesError> {
    let source_flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | CAUTION;
    let source = openat(from.0, from.1, source_flags, Mode::empty())?;
    let stat = fstat(&source)?;
    if file_type(&stat) != FileType::RegularFile {
        return Err(FilesError::CopyOfSpecial);
    }
    check_size(u64::try_from(stat.st_size).unwrap_or(0))?;
    let most = max_size();
    let mode = Mode::from_raw_mode(stat.st_mode & PERMISSIONS);
    let Some(target) = open_target(to, &stat, mode, flags)? else {
        return Ok(());
    };
    let (mut source, mut target) = (File::from(source), File::from(target));
    let copied = std::io::copy(&mut source.by_ref().take(most), &mut target)?;
    // It may have grown while it was copied, and a byte too many must not even be tried.
    if copied == most && source.read(&mut [0])? != 0 {
        return Err(Errno::FBIG.into());
    }
    fchmod(&target, mode)?;
    Ok(())
}

/// An empty file to copy into; none if that is the very file that is copied.
fn open_target<Fd: AsFd>(
    (place, name): Place<'_, Fd>,
    source: &Stat,
    mode: Mode,
    flags: AtFlags,
) -> Result<Option<OwnedFd>, FilesError> {
    match statat(place, name, flags) {
        Ok(there) if Identity::from(&there) == Identity::from(source) => return Ok(None),
        Ok(there) => match file_type(&there) {
            FileType::RegularFile | FileType::Directory | FileType::Symlink => {}
            _ => return Err(FilesError::NotAFile),
        },
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let mut target_flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | CAUTION;
    if flags.contains(AtFlags::SYMLINK_NOFOLLOW) {
        target_flags |= OFlags::NOFOLLOW;
    }
    let target = openat(place, name, target_flags, mode | Mode::WUSR)?;
    check_regular(&target)?;
    if Identity::of(&target)? == Identity::from(source) {
        return Ok(None);
    }
    ftruncate(&target, 0)?;
    Ok(Some(target))
}

/// Makes a link that says the same.
pub(crate) fn copy_link<A: AsFd, B: AsFd>(
    from: Place<'_, A>,
    to: Place<'_, B>,
) -> Result<(), FilesError> {
    let text = readlinkat(from.0, from.1, Vec::new())?;
    Ok(symlinkat(text, to.0, to.1)?)
}

/// Whether the copy would be outside of what is copied, wherever links lead: from where it would be
/// made up to the root, no directory is the original.
fn check_apart(source: &OwnedFd, destination: &Path) -> Result<(), FilesError> {
    let original = Identity::of(source)?;
    let nearest = destination
        .ancestors()
        .map(|path| {
            if path.as_os_str().is_empty() {
                Path::new(".")
            } else {
                path
            }
        })
        .find_map(|path| openat(CWD, path, PLACE | OFlags::CLOEXEC, Mode::empty()).ok());
    let Some(mut place) = nearest else {
        return Ok(());
    };
    let mut identity = Identity::of(&place)?;
    loop {
        if identity == original {
            return Err(FilesError::CopyIntoItself);
        }
        place = openat(&place, c"..", PLACE | OFlags::CLOEXEC, Mode::empty())?;
        let above = Identity::of(&place)?;
        if above == identity {
            return Ok(());
        }
        identity = above;
    }
}
