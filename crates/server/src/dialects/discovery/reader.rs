//! Reads files of the host, within the memory of the connection.

use std::{
    cell::{Cell, RefCell},
    path::Path,
};

use outpost_files::{FileExecutor, FilesError};
use outpost_protocol::{FileMetadata, FileOp, FileReply, FsGetMetadataParams, PathUri, Symlinks};
use outpost_rpc::MemoryShare;

use crate::dialects::fs::ResultMemory;

/// Reads files for one result, and charges what the result keeps.
pub(super) struct Reader<'a> {
    executor: &'a FileExecutor,
    share: MemoryShare,
    kept: RefCell<ResultMemory>,
    is_out_of_memory: Cell<bool>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(executor: &'a FileExecutor, share: MemoryShare) -> Self {
        Reader {
            executor,
            kept: RefCell::new(ResultMemory::new(&share)),
            share,
            is_out_of_memory: Cell::new(false),
        }
    }

    /// Returns the memory of all files that were read. Fails if there was not enough.
    pub(super) fn finish(self) -> Result<ResultMemory, FilesError> {
        match self.is_out_of_memory.get() {
            true => Err(FilesError::NoListingMemory),
            false => Ok(self.kept.into_inner()),
        }
    }

    /// Reads a file as text.
    pub(super) fn read_text(
        &self,
        path: &Path,
        symlinks: Symlinks,
        limit: u64,
    ) -> Result<String, FilesError> {
        let file = self.executor.open(&PathUri::from_path(path), symlinks)?;
        if file.size()? > limit {
            return Err(FilesError::FileTooLarge { limit });
        }
        let mut bytes = vec![0; limit as usize];
        let read = file.fill(0, &mut bytes)?;
        bytes.truncate(read);
        // Otherwise it keeps the memory of the largest file.
        bytes.shrink_to_fit();
        if !self.kept.borrow_mut().take(read) {
            self.is_out_of_memory.set(true);
            return Err(FilesError::NoListingMemory);
        }
        String::from_utf8(bytes).map_err(|_| {
            let error = std::io::Error::from(std::io::ErrorKind::InvalidData);
            FilesError::Os(error)
        })
    }

    /// Whether a path exists.
    pub(super) fn exists(&self, path: &Path) -> bool {
        self.metadata(path).is_ok()
    }

    pub(super) fn metadata(&self, path: &Path) -> Result<FileMetadata, FilesError> {
        let op = FileOp::GetMetadata(FsGetMetadataParams {
            path: PathUri::from_path(path),
            symlinks: Symlinks::Follow,
        });
        let reply = self.executor.perform(op)?;
        FileMetadata::try_from(reply).map_err(|_| FilesError::NoReply)
    }

    /// Performs an operation, and returns the memory of its reply.
    pub(super) fn perform(&self, op: FileOp) -> Result<(FileReply, ResultMemory), FilesError> {
        let mut memory = ResultMemory::new(&self.share);
        let reply = self
            .executor
            .perform_within(op, &mut |bytes| memory.take(bytes));
        if matches!(reply, Err(FilesError::NoListingMemory)) {
            self.is_out_of_memory.set(true);
        }
        Ok((reply?, memory))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outpost_files::Files;
    use outpost_rpc::MemoryBudget;

    use super::*;

    #[test]
    fn files_beyond_the_memory_fail_the_result() {
        const FILE_BYTES: usize = 1024 * 1024;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'x'; FILE_BYTES]).unwrap();
        let executor = FileExecutor::in_process(Files::default());
        let budget = MemoryBudget::new(8 * FILE_BYTES, Duration::ZERO);
        let read = |reader: &Reader<'_>| {
            let text = reader.read_text(file.path(), Symlinks::Follow, FILE_BYTES as u64);
            text.map(|text| text.len())
        };
        let reader = Reader::new(&executor, budget.share());
        let texts = std::iter::from_fn(|| read(&reader).ok()).take(100);
        let kept = texts.count();
        assert!((2..=8).contains(&kept), "{kept} files");
        assert!(matches!(reader.finish(), Err(FilesError::NoListingMemory)));
        // The memory is free again.
        let reader = Reader::new(&executor, budget.share());
        assert_eq!(read(&reader).unwrap(), FILE_BYTES);
        assert!(reader.finish().is_ok());
    }
}
