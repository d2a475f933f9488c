//! Reads whole files, and open files in blocks.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use outpost_types::Symlinks;

use crate::{Files, FilesError, Limits};

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

impl Files {
    /// Opens a regular file for reading.
    pub fn open(&self, path: &Path, symlinks: Symlinks) -> Result<OpenFile, FilesError> {
        Ok(OpenFile {
            file: self.open_regular(path, symlinks)?,
            limits: self.limits,
        })
    }

    /// Reads all bytes of a regular file.
    pub fn read(&self, path: &Path, symlinks: Symlinks) -> Result<Vec<u8>, FilesError> {
        self.open(path, symlinks)?.read()
    }
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
            .try_reserve_exact(usize::try_from(self.len()?).unwrap_or(usize::MAX))
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let limit = self.limits.file_bytes;
        (&self.file).take(limit + 1).read_to_end(&mut bytes)?;
        // The file may have grown since its size was read.
        self.check_len(bytes.len() as u64)?;
        Ok(bytes)
    }

    /// The current size. Fails if the file is too large to be read as a whole.
    pub fn len(&self) -> Result<u64, FilesError> {
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

    /// Whether the file is empty.
    pub fn is_empty(&self) -> Result<bool, FilesError> {
        Ok(self.len()? == 0)
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
