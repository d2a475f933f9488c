//! Replaces a file in blocks, in this process or through a worker.

use std::fs::File;

use crate::executor::Sandboxed;
use crate::stream::write_at;
use crate::worker::messages::Call;
use crate::{FilesError, StreamWriter};

/// Writes the new content of a file. Dropping it without a commit leaves the file unchanged and
/// removes what was written.
#[derive(Debug)]
pub struct Writer(pub(crate) WriterBackend);

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

    /// Atomically replaces the file with what was written.
    pub fn commit(self) -> Result<(), FilesError> {
        match self.0 {
            WriterBackend::InProcess(writer) => writer.commit(),
            WriterBackend::Sandboxed { executor, .. } => {
                let reply = executor.call(&Call::Commit)?.into_reply()?;
                <()>::try_from(reply).map_err(|_| FilesError::NoReply)
            }
        }
    }
}
