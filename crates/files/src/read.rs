//! Reading files: all of one, or blocks of one that stays open.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::{Files, FilesError, Limits, Links};

/// A regular file that stays open. It stays the same file, whatever becomes of its path.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    limits: Limits,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// As many as were asked for, if there are so many.
    pub bytes: Vec<u8>,
    /// There were fewer than were asked for.
    pub eof: bool,
}

impl Files {
    /// Opens a regular file.
    pub fn open(&self, path: &Path, links: Links) -> Result<OpenFile, FilesError> {
        Ok(OpenFile {
            file: self.open_regular(path, links)?,
            limits: self.limits,
        })
    }

    /// All bytes of a regular file.
    pub fn read(&self, path: &Path, links: Links) -> Result<Vec<u8>, FilesError> {
        self.open(path, links)?.read()
    }
}

impl OpenFile {
    /// One that was opened elsewhere, and found to be regular there.
    pub(crate) fn of(file: File, limits: Limits) -> Self {
        OpenFile { file, limits }
    }

    /// All its bytes, from the beginning.
    pub fn read(&self) -> Result<Vec<u8>, FilesError> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(usize::try_from(self.len()?).unwrap_or(usize::MAX))
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let limit = self.limits.file_bytes;
        (&self.file).take(limit + 1).read_to_end(&mut bytes)?;
        // It may have grown since we looked.
        self.check_len(bytes.len() as u64)?;
        Ok(bytes)
    }

    /// How many bytes it has now, if they aren't too many to be read as a whole.
    pub fn len(&self) -> Result<u64, FilesError> {
        let len = self.file.metadata()?.len();
        self.check_len(len)?;
        Ok(len)
    }

    /// Whether so many bytes may be read as a whole, for who reads them block by block.
    pub fn check_len(&self, len: u64) -> Result<(), FilesError> {
        let limit = self.limits.file_bytes;
        match len > limit {
            true => Err(FilesError::FileTooLarge { limit }),
            false => Ok(()),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> Result<bool, FilesError> {
        Ok(self.len()? == 0)
    }

    /// The bytes from `offset` on: `len` of them, or all there are. Any offset, any order.
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

    /// Reads into `buffer` until it is full or the file ends; says how much.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, FilesError> {
        // No file reaches further, and the system would call it a mistake to ask.
        let reach = (i64::MAX as u64).saturating_sub(offset);
        let len = buffer
            .len()
            .min(usize::try_from(reach).unwrap_or(usize::MAX));
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
