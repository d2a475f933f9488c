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
        let open = || {
            self.check_before_open(path, symlinks)?;
            let flags = OFlags::RDONLY | NO_SIDE_EFFECTS;
            let file = self.open_path(path, flags, Mode::empty(), symlinks)?;
            check_regular(&file)?;
            Ok(file.into())
        };
        open().map_err(|error: FilesError| match error.is(Errno::ISDIR) {
            // In the words of the released servers.
            true => FilesError::NotRegularFile { path: None },
            false => error,
        })
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

    /// Opens a regular file for writing and truncates it. Creates it if it does not exist.
    pub(crate) fn open_to_replace(&self, path: &Path) -> Result<File, FilesError> {
        // A FIFO without a reader cannot be opened without blocking, and one with a reader should not
        // be: the reader would see the end of its input.
        let existing = self.open_path(path, OFlags::PATH, Mode::empty(), Symlinks::Follow);
        if existing.is_ok_and(|file| is_fifo_or_socket(&file)) {
            return Err(Errno::NXIO.into());
        }
        let file = self.open_to_write(path, Symlinks::Follow)?;
        file.set_len(0)?;
        Ok(file)
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

fn is_fifo_or_socket(file: impl AsFd) -> bool {
    fstat(file).is_ok_and(|stat| matches!(file_type(&stat), FileType::Fifo | FileType::Socket))
}

pub(crate) fn check_type(stat: &Stat) -> Result<(), FilesError> {
    match file_type(stat) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(FilesError::NotRegularFile { path: None }),
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

/// Fails if a block would reach beyond the largest offset of a file.
fn check_range(offset: u64, len: usize) -> Result<(), FilesError> {
    let end = offset.checked_add(len as u64);
    match end.is_none_or(|end| i64::try_from(end).is_err()) {
        true => Err(FilesError::WriteRange),
        false => Ok(()),
    }
}

/// Writes a block into an open file. A block that reaches beyond `RLIMIT_FSIZE` is written up to it.
pub(crate) fn write_at(file: &File, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
    check_range(offset, bytes.len())?;
    let allowed = max_size().saturating_sub(offset);
    let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
    let written = &bytes[..bytes.len().min(allowed)];
    file.write_all_at(written, offset)?;
    // A write at the limit itself would raise SIGXFSZ.
    if written.len() < bytes.len() {
        return Err(Errno::FBIG.into());
    }
    Ok(())
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
        Self::check_read(len, self.limits)?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len as usize)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        bytes.resize(len as usize, 0);
        let read = self.fill(offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(Block {
            eof: (read as u64) < len,
            bytes,
        })
    }

    /// Fails if a block of this length may not be read.
    pub fn check_read(len: u64, limits: Limits) -> Result<(), FilesError> {
        let limit = limits.block_bytes;
        if len == 0 || len > limit {
            return Err(FilesError::BlockLength { limit });
        }
        Ok(())
    }

    /// Fails if a block of this length may not be written at this offset.
    pub fn check_write(offset: u64, len: usize, limits: Limits) -> Result<(), FilesError> {
        let limit = limits.block_bytes;
        if len == 0 || len as u64 > limit {
            return Err(FilesError::WriteLength { limit });
        }
        check_range(offset, len)
    }

    /// Writes a block at any offset of a file that was opened to be replaced. Gaps read as zeros. If it
    /// fails, a part of the block may be written.
    pub fn write_block(&self, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        Self::check_write(offset, bytes.len(), self.limits)?;
        write_at(&self.file, offset, bytes)
    }

    /// Reads at `offset` until `buffer` is full or the file ends. Returns the number of bytes.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, FilesError> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset.saturating_add(filled as u64);
            match self.file.read_at(&mut buffer[filled..], at) {
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
