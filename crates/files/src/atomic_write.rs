//! Replaces a file atomically with content that is written in blocks.
//!
//! The new file is unnamed (`O_TMPFILE`) until it is complete, so that nothing is left over if this
//! process dies. On file systems without `O_TMPFILE` it is a named temporary file, which is removed
//! when the writer is dropped.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use outpost_types::Symlinks;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, linkat, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::copy::PERMISSIONS;
use crate::executor::{CallResult, Sandboxed};
use crate::regular::{check_type, write_at};
use crate::resolve::{Identity, file_type, if_exists, open_following};
use crate::worker::Call;
use crate::{Files, FilesError, secrets};

/// The mode of a new file before the umask is applied.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// The mode of a named temporary file: the file that it replaces may be private.
const TEMP_MODE: Mode = Mode::from_raw_mode(0o600);

/// The number of names that are tried for a temporary file.
const ATTEMPTS: u32 = 100;

/// Writes the new content of a file, in this process or through a worker. Dropping it without a commit
/// leaves the file unchanged and removes what was written.
#[derive(Debug)]
pub struct Writer(pub(crate) WriterBackend);

/// The place where a [`Writer`] works: this process or a sandboxed worker.
#[derive(Debug)]
pub(crate) enum WriterBackend {
    InProcess(StreamWriter),
    /// The worker holds the [`StreamWriter`] and commits it, or drops it when the socket is closed.
    Sandboxed {
        file: File,
        executor: Sandboxed,
    },
}

impl Writer {
    /// Writes a block at any offset. Gaps read as zeros.
    pub fn write_block(&self, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        match &self.0 {
            WriterBackend::InProcess(writer) => writer.write_block(offset, bytes),
            WriterBackend::Sandboxed { file, .. } => write_at(file, offset, bytes),
        }
    }

    /// Atomically replaces the file with what was written. Owner and permissions of an existing file
    /// are kept, except for set-user-ID and set-group-ID: these were granted to the old content.
    pub fn commit(self) -> Result<(), FilesError> {
        match self.0 {
            WriterBackend::InProcess(writer) => writer.commit(),
            WriterBackend::Sandboxed { executor, .. } => match executor.call(&Call::Commit)? {
                CallResult::Reply(_) => Ok(()),
                CallResult::File(_) => Err(FilesError::NoReply),
            },
        }
    }
}

/// Writes the new content of a file in this process.
#[derive(Debug)]
pub(crate) struct StreamWriter {
    file: File,
    /// The directory of the replaced file, even if its path leads elsewhere by now.
    directory: OwnedFd,
    /// The name of the replaced file.
    name: OsString,
    temp: TempFile,
}

/// The state of the new file.
#[derive(Debug)]
enum TempFile {
    Unnamed,
    Named(OsString),
    /// The temporary file has replaced the old file.
    Committed,
}

impl Files {
    /// Starts to replace a file, which need not exist. If the path is a symbolic link, its target is
    /// replaced.
    pub(crate) fn create_stream(&self, path: &Path) -> Result<StreamWriter, FilesError> {
        let path = target(path)?;
        let (directory, name) = self.open_parent(&path, Symlinks::Follow)?;
        check_replaceable(&directory, name)?;
        let (file, temp) = create_temp(&directory)?;
        Ok(StreamWriter {
            file,
            directory,
            name: name.to_owned(),
            temp,
        })
    }
}

impl StreamWriter {
    fn write_block(&self, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        write_at(&self.file, offset, bytes)
    }

    /// Another descriptor of the new file, through which another process can write.
    pub(crate) fn clone_file(&self) -> Result<File, FilesError> {
        Ok(self.file.try_clone()?)
    }

    pub(crate) fn commit(mut self) -> Result<(), FilesError> {
        match (check_replaceable(&self.directory, &self.name)?, &self.temp) {
            (Some(existing), _) => self.copy_owner_and_mode(&existing)?,
            (None, TempFile::Named(_)) => fchmod(&self.file, default_mode(&self.directory)?)?,
            // An unnamed file was created with the default mode.
            (None, _) => {}
        }
        // Without this, the rename could survive a crash that the content does not.
        self.file.sync_data()?;
        if matches!(self.temp, TempFile::Unnamed) {
            let name = try_names(|name| link(&self.file, &self.directory, name))?.1;
            self.temp = TempFile::Named(name);
        }
        if let TempFile::Named(temp) = &self.temp {
            renameat(&self.directory, temp, &self.directory, &self.name)?;
        }
        self.temp = TempFile::Committed;
        Ok(())
    }

    fn copy_owner_and_mode(&self, existing: &Stat) -> Result<(), FilesError> {
        let new = fstat(&self.file)?;
        if (new.st_uid, new.st_gid) != (existing.st_uid, existing.st_gid) {
            let owner = Uid::from_raw(existing.st_uid);
            let group = Gid::from_raw(existing.st_gid);
            fchown(&self.file, Some(owner), Some(group))?;
        }
        Ok(fchmod(
            &self.file,
            Mode::from_raw_mode(existing.st_mode & PERMISSIONS),
        )?)
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        if let TempFile::Named(name) = &self.temp {
            // An error means that it is gone already, or cannot be removed.
            let _ = unlinkat(&self.directory, name, AtFlags::empty());
        }
    }
}

/// The path itself, or its target if it is a symbolic link.
fn target(path: &Path) -> Result<PathBuf, FilesError> {
    match if_exists(statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW))? {
        Some(stat) if file_type(&stat) == FileType::Symlink => {
            open_following(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            Ok(std::fs::canonicalize(path)?)
        }
        _ => Ok(path.to_owned()),
    }
}

/// The metadata of the existing file, if there is one. Fails if it is not a regular file, or is a secret.
fn check_replaceable(directory: impl AsFd, name: &OsStr) -> Result<Option<Stat>, FilesError> {
    let existing = if_exists(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW))?;
    if let Some(stat) = &existing {
        check_type(stat)?;
        secrets::check(|| Ok(*stat))?;
    }
    Ok(existing)
}

fn create_temp(directory: &OwnedFd) -> Result<(File, TempFile), FilesError> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(directory, c".", flags, MODE) {
        Ok(file) if is_linkable(&file) => Ok((file.into(), TempFile::Unnamed)),
        Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => create_named(directory),
        Err(error) => Err(error.into()),
    }
}

fn create_named(directory: &OwnedFd) -> Result<(File, TempFile), FilesError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let (file, name) = try_names(|name| openat(directory, name, flags, TEMP_MODE))?;
    Ok((file.into(), TempFile::Named(name)))
}

/// The mode of a new file in this directory, which depends on the umask and the default ACL. The umask
/// cannot be read without changing it, so a file is created and removed.
fn default_mode(directory: &OwnedFd) -> Result<Mode, FilesError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let (file, name) = try_names(|name| openat(directory, name, flags, MODE))?;
    let stat = fstat(&file);
    unlinkat(directory, &name, AtFlags::empty())?;
    Ok(Mode::from_raw_mode(stat?.st_mode & PERMISSIONS))
}

/// Whether an unnamed file can be linked, which needs `/proc` to be mounted.
fn is_linkable(file: &OwnedFd) -> bool {
    let in_proc = statat(CWD, proc_path(file), AtFlags::empty());
    match (in_proc, fstat(file)) {
        (Ok(in_proc), Ok(stat)) => Identity::from(&in_proc) == Identity::from(&stat),
        _ => false,
    }
}

fn proc_path(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn link(file: &File, directory: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    linkat(
        CWD,
        proc_path(file),
        directory,
        name,
        AtFlags::SYMLINK_FOLLOW,
    )
}

/// Tries generated names until one does not exist yet.
fn try_names<T>(
    mut attempt: impl FnMut(&OsStr) -> Result<T, Errno>,
) -> Result<(T, OsString), FilesError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let process = rustix::process::getpid().as_raw_nonzero();
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".outpost-{process}-{number}.part"));
        match attempt(&name) {
            Ok(value) => return Ok((value, name)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::PATH_DIRECTORY;

    /// A writer as on a file system without `O_TMPFILE`.
    fn named_writer(folder: &Path) -> StreamWriter {
        let directory = openat(CWD, folder, PATH_DIRECTORY, Mode::empty()).unwrap();
        let (file, temp) = create_named(&directory).unwrap();
        StreamWriter {
            file,
            directory,
            name: OsString::from("file"),
            temp,
        }
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn named_temporary_file_replaces_the_file_or_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let writer = named_writer(folder.path());
        writer.write_block(0, b"new").unwrap();
        let existing = names(folder.path());
        assert!(existing.len() == 1 && existing[0] != "file", "{existing:?}");
        drop(writer);
        assert!(names(folder.path()).is_empty());

        let writer = named_writer(folder.path());
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
    fn named_temporary_file_is_private_until_commit() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        File::create(&plain).unwrap();
        let default_mode = mode(&plain);
        std::fs::remove_file(&plain).unwrap();
        let writer = named_writer(folder.path());
        writer.write_block(0, b"secret").unwrap();
        assert_eq!(mode(&folder.path().join(&names(folder.path())[0])), 0o600);
        writer.commit().unwrap();
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(mode(&folder.path().join("file")), default_mode);
    }

    #[test]
    fn new_content_loses_set_user_id() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let set = |mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&path, mode).unwrap();
        };
        for (before, after) in [(0o6750, 0o750), (0o600, 0o600)] {
            set(before);
            let unnamed = Files::default().create_stream(&path).unwrap();
            unnamed.commit().unwrap();
            assert_eq!(mode(&path), after);
            set(before);
            named_writer(folder.path()).commit().unwrap();
            assert_eq!(mode(&path), after);
        }
    }

    #[test]
    fn existing_temporary_names_are_skipped() {
        let mut tried = Vec::new();
        let (value, name) = try_names(|name| {
            tried.push(name.to_owned());
            if tried.len() < 3 {
                Err(Errno::EXIST)
            } else {
                Ok(7)
            }
        })
        .unwrap();
        assert_eq!((value, Some(&name)), (7, tried.last()));
        let never = try_names(|_| Err::<(), _>(Errno::EXIST));
        assert!(never.unwrap_err().is(Errno::EXIST));
    }
}
