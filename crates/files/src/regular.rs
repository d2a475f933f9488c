//! Regular files: opened without side effects, read as a whole or in blocks, and overwritten in place.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use outpost_types::Symlinks;
use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::resolve::file_type;
use crate::{Files, FilesError, Limits};

/// Flags that keep an open from blocking on a FIFO and from acquiring a controlling terminal.
pub(crate) const NO_SIDE_EFFECTS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

impl Files {
    /// Opens a regular file for reading.
    pub(crate) fn open_regular(&self, path: &Path, symlinks: Symlinks) -> Result<File, FilesError> {
        self.check_before_open(path, symlinks)?;
        let file = self.open_path(
            path,
            OFlags::RDONLY | NO_SIDE_EFFECTS,
            Mode::empty(),
            symlinks,
        )?;
        check_regular(&file)?;
        Ok(file.into())
    }

    /// Opens a regular file for writing without truncating it. Creates it if it does not exist.
    pub(crate) fn open_to_write(
        &self,
        path: &Path,
        symlinks: Symlinks,
    ) -> Result<File, FilesError> {
        let flags = OFlags::WRONLY | NO_SIDE_EFFECTS;
        let mode = Mode::from_raw_mode(0o666);
        // In a sticky directory `O_CREAT` on another user's existing file may fail
        // (fs.protected_regular), so try without it first.
        let existing = self
            .check_before_open(path, symlinks)
            .and_then(|()| self.open_path(path, flags, Mode::empty(), symlinks));
        let file = match existing {
            Err(error) if error.is(Errno::NOENT) => {
                self.open_path(path, flags | OFlags::CREATE, mode, symlinks)?
            }
            opened => opened?,
        };
        check_regular(&file)?;
        Ok(file.into())
    }

    /// Checks the file type without opening the file: opening a device can have side effects, and a
    /// socket cannot be opened. The path may be replaced before the open, so the caller checks again.
    fn check_before_open(&self, path: &Path, symlinks: Symlinks) -> Result<(), FilesError> {
        let file = self.open_path(path, OFlags::PATH, Mode::empty(), symlinks)?;
        check_regular(&file)
    }
}

/// Fails unless the file is a regular file.
pub(crate) fn check_regular(file: impl AsFd) -> Result<(), FilesError> {
    check_type(&fstat(file)?)
}

pub(crate) fn check_type(stat: &Stat) -> Result<(), FilesError> {
    match file_type(stat) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(FilesError::NotRegularFile),
    }
}

/// Fails if a file may not grow to this size. A write beyond `RLIMIT_FSIZE` would raise SIGXFSZ, which
/// kills the process.
pub(crate) fn check_size(bytes: u64) -> Result<(), FilesError> {
    if bytes > max_size() {
        return Err(Errno::FBIG.into());
    }
    Ok(())
}

/// The largest size of a file (`RLIMIT_FSIZE`).
pub(crate) fn max_size() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// An open regular file. It stays the same file even if its path is replaced.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    limits: Limits,
}

/// A block of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The bytes: as many as requested, or fewer at the end of the file.
    pub bytes: Vec<u8>,
    /// Whether there are fewer bytes than requested.
    pub eof: bool,
}

impl OpenFile {
    /// Wraps a file that was opened as a regular file.
    pub(crate) fn new(file: File, limits: Limits) -> Self {
        OpenFile { file, limits }
    }

    /// Reads all bytes from the current position of a newly opened file.
    pub fn read(&self) -> Result<Vec<u8>, FilesError> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(usize::try_from(self.size()?).unwrap_or(usize::MAX))
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let limit = self.limits.file_bytes;
        (&self.file).take(limit + 1).read_to_end(&mut bytes)?;
        // The file may have grown since its size was read.
        self.check_len(bytes.len() as u64)?;
        Ok(bytes)
    }

    /// The current size. Fails if the file is too large to be read as a whole.
    pub fn size(&self) -> Result<u64, FilesError> {
        let len = self.file.metadata()?.len();
        self.check_len(len)?;
        Ok(len)
    }

    /// Fails if a file of this size is too large to be read as a whole.
    pub fn check_len(&self, len: u64) -> Result<(), FilesError> {
        let limit = self.limits.file_bytes;
        if len > limit {
            return Err(FilesError::FileTooLarge { limit });
        }
        Ok(())
    }

    /// Reads up to `len` bytes at `offset`.
    pub fn read_block(&self, offset: u64, len: u64) -> Result<Block, FilesError> {
        let limit = self.limits.block_bytes;
        if len == 0 || len > limit {
            return Err(FilesError::BlockLength { limit });
        }
        let mut bytes = vec![0; len as usize];
        let read = self.fill(offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(Block {
            eof: (read as u64) < len,
            bytes,
        })
    }

    /// Reads at `offset` until `buffer` is full or the file ends. Returns the number of bytes.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, FilesError> {
        // The kernel rejects a read beyond the largest file offset with EINVAL.
        let readable = (i64::MAX as u64).saturating_sub(offset);
        let len = buffer
            .len()
            .min(usize::try_from(readable).unwrap_or(usize::MAX));
        let mut filled = 0;
        while filled < len {
            match self
                .file
                .read_at(&mut buffer[filled..len], offset + filled as u64)
            {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }
}

/// Replaces the content of an open file.
pub(crate) fn replace_content(mut file: File, bytes: &[u8]) -> Result<(), FilesError> {
    file.set_len(0)?;
    file.write_all(bytes)?;
    Ok(())
}
