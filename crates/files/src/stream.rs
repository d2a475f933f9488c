//! A file that is written in blocks, and takes another's place all at once.
//!
//! What is written has no name until it is complete, so that nothing of it stays if this process
//! dies. Some file systems can't do that: there it has a name from the start, which is removed with
//! the writer.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, linkat, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::copy::PERMISSIONS;
use crate::identity::file_type;
use crate::regular::check_size;
use crate::{Files, FilesError, Links};

/// The mode of a new file, of which the process's mask leaves something.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// The mode of what has a name before it is complete: what it replaces may be nobody else's business.
const DRAFT: Mode = Mode::from_raw_mode(0o600);

/// How many names are tried for what has one while it is written.
const ATTEMPTS: u32 = 100;

/// What will be in a file. Dropping it leaves the file as it is, and no trace.
#[derive(Debug)]
pub struct StreamWriter {
    file: File,
    /// Where the file is to be, whatever becomes of the path that led there,
    place: OwnedFd,
    /// and what it is called there.
    name: OsString,
    draft: Draft,
}

/// What is written, as long as it isn't complete.
#[derive(Debug)]
enum Draft {
    Nameless,
    Named(OsString),
    /// It has taken its place.
    Done,
}

impl Files {
    /// Starts to replace a file, which needn't exist. A link to a file stays, and the file it leads
    /// to is replaced.
    pub fn create_stream(&self, path: &Path) -> Result<StreamWriter, FilesError> {
        let path = target(path)?;
        let (place, name) = self.open_parent(&path, Links::Follow)?;
        check_replaceable(&place, name)?;
        let (file, draft) = new_draft(&place)?;
        Ok(StreamWriter {
            file,
            place,
            name: name.to_owned(),
            draft,
        })
    }
}

impl StreamWriter {
    /// Writes a block, anywhere and in any order. What is never written is zero.
    pub fn write_block(&self, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        write_at(&self.file, offset, bytes)
    }

    /// What is written, for somebody else to write it.
    pub(crate) fn draft(&self) -> Result<File, FilesError> {
        Ok(self.file.try_clone()?)
    }

    /// Puts what was written in the place of the file, in one step for everybody who looks. Owner and
    /// permissions of a file that was there are kept; that it ran as its owner is not, since that was
    /// said of other content.
    pub fn commit(mut self) -> Result<(), FilesError> {
        match (check_replaceable(&self.place, &self.name)?, &self.draft) {
            (Some(there), _) => self.take_after(&there)?,
            (None, Draft::Named(_)) => fchmod(&self.file, usual_mode(&self.place)?)?,
            // It has had the usual mode all along, and nobody could see it.
            (None, _) => {}
        }
        // Otherwise the new name could survive a crash that the new content doesn't.
        self.file.sync_data()?;
        if matches!(self.draft, Draft::Nameless) {
            let name = free_name(|name| link(&self.file, &self.place, name))?.1;
            self.draft = Draft::Named(name);
        }
        if let Draft::Named(draft) = &self.draft {
            renameat(&self.place, draft, &self.place, &self.name)?;
        }
        self.draft = Draft::Done;
        Ok(())
    }

    fn take_after(&self, there: &Stat) -> Result<(), FilesError> {
        let ours = fstat(&self.file)?;
        if (ours.st_uid, ours.st_gid) != (there.st_uid, there.st_gid) {
            let owner = Uid::from_raw(there.st_uid);
            let group = Gid::from_raw(there.st_gid);
            fchown(&self.file, Some(owner), Some(group))?;
        }
        Ok(fchmod(
            &self.file,
            Mode::from_raw_mode(there.st_mode & PERMISSIONS),
        )?)
    }
}

/// Writes a block into an open file.
pub(crate) fn write_at(file: &File, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
    let end = offset.checked_add(bytes.len() as u64);
    let end = end.filter(|end| i64::try_from(*end).is_ok());
    check_size(end.ok_or(Errno::FBIG)?)?;
    Ok(file.write_all_at(bytes, offset)?)
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        if let Draft::Named(name) = &self.draft {
            // Whoever removed it before did what was to be done.
            let _ = unlinkat(&self.place, name, AtFlags::empty());
        }
    }
}

/// The path itself, or what it leads to if it is a link.
fn target(path: &Path) -> Result<PathBuf, FilesError> {
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if file_type(&stat) == FileType::Symlink => Ok(std::fs::canonicalize(path)?),
        Ok(_) | Err(Errno::NOENT) => Ok(path.to_owned()),
        Err(error) => Err(error.into()),
    }
}

/// What is there, if it can be replaced by a file.
fn check_replaceable(place: impl AsFd, name: &OsStr) -> Result<Option<Stat>, FilesError> {
    match statat(place, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
        Ok(stat) => match file_type(&stat) {
            FileType::RegularFile => Ok(Some(stat)),
            FileType::Directory => Err(Errno::ISDIR.into()),
            _ => Err(FilesError::NotAFile),
        },
    }
}

fn new_draft(place: &OwnedFd) -> Result<(File, Draft), FilesError> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(place, c".", flags, MODE) {
        Ok(file) if can_be_named(&file) => Ok((file.into(), Draft::Nameless)),
        Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => named_draft(place),
        Err(error) => Err(error.into()),
    }
}

fn named_draft(place: &OwnedFd) -> Result<(File, Draft), FilesError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let (file, name) = free_name(|name| openat(place, name, flags, DRAFT))?;
    Ok((file.into(), Draft::Named(name)))
}

/// What a new file gets here, by the process's mask and what the directory says. Neither can be asked
/// without changing it, so one is made.
fn usual_mode(place: &OwnedFd) -> Result<Mode, FilesError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let (file, name) = free_name(|name| openat(place, name, flags, MODE))?;
    let stat = fstat(&file);
    unlinkat(place, &name, AtFlags::empty())?;
    Ok(Mode::from_raw_mode(stat?.st_mode & PERMISSIONS))
}

/// A file without a name gets one by way of `/proc`, which isn't everywhere.
fn can_be_named(file: &OwnedFd) -> bool {
    let there = statat(CWD, proc_path(file), AtFlags::empty());
    match (there, fstat(file)) {
        (Ok(there), Ok(stat)) => (there.st_dev, there.st_ino) == (stat.st_dev, stat.st_ino),
        _ => false,
    }
}

fn proc_path(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn link(file: &File, place: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    linkat(CWD, proc_path(file), place, name, AtFlags::SYMLINK_FOLLOW)
}

/// Tries names until one is free.
fn free_name<T>(
    mut attempt: impl FnMut(&OsStr) -> Result<T, Errno>,
) -> Result<(T, OsString), FilesError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let process = rustix::process::getpid().as_raw_nonzero();
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".outpost-{process}-{number}.part"));
        match attempt(&name) {
            Ok(made) => return Ok((made, name)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer as it is where nothing can be without a name.
    fn named(folder: &Path) -> StreamWriter {
        let place = openat(CWD, folder, crate::resolve::PLACE, Mode::empty()).unwrap();
        let (file, draft) = named_draft(&place).unwrap();
        StreamWriter {
            file,
            place,
            name: OsString::from("file"),
            draft,
        }
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn what_has_a_name_from_the_start_takes_its_place_or_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let writer = named(folder.path());
        writer.write_block(0, b"new").unwrap();
        let there = names(folder.path());
        assert!(there.len() == 1 && there[0] != "file", "{there:?}");
        drop(writer);
        assert!(names(folder.path()).is_empty());

        let writer = named(folder.path());
        writer.write_block(0, b"new").unwrap();
        writer.commit().unwrap();
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"new");
    }

    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::PermissionsExt as _;
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_has_a_name_before_it_is_complete_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let usual = folder.path().join("usual");
        File::create(&usual).unwrap();
        let usual = (mode(&usual), std::fs::remove_file(&usual).unwrap()).0;
        let writer = named(folder.path());
        writer.write_block(0, b"secret").unwrap();
        assert_eq!(mode(&folder.path().join(&names(folder.path())[0])), 0o600);
        writer.commit().unwrap();
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(mode(&folder.path().join("file")), usual);
    }

    #[test]
    fn new_content_does_not_run_as_the_owner_of_the_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let set = |mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&path, mode).unwrap();
        };
        for (before, after) in [(0o6750, 0o750), (0o600, 0o600)] {
            set(before);
            let nameless = Files::default().create_stream(&path).unwrap();
            nameless.commit().unwrap();
            assert_eq!(mode(&path), after);
            set(before);
            named(folder.path()).commit().unwrap();
            assert_eq!(mode(&path), after);
        }
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let mut tried = Vec::new();
        let (made, name) = free_name(|name| {
            tried.push(name.to_owned());
            if tried.len() < 3 {
                Err(Errno::EXIST)
            } else {
                Ok(7)
            }
        })
        .unwrap();
        assert_eq!((made, Some(&name)), (7, tried.last()));
        let never = free_name(|_| Err::<(), _>(Errno::EXIST));
        assert!(never.unwrap_err().is(Errno::EXIST));
    }
}
