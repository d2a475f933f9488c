//! A file being written at the destination.

use std::path::Path;

use bytes::{Bytes, BytesMut};
use outpost_client::{Error, FileError, FileWriter, Files};

/// Maximum file size for a server without write streams: one message.
const WHOLE_BYTES: usize = 32 * 1024 * 1024;

/// An incomplete copy.
pub(super) enum PendingFile<'a> {
    /// Replaces the old file when it is complete.
    Stream(FileWriter),
    /// For a server without write streams: collected, and written in one request.
    Whole {
        files: &'a Files,
        path: &'a Path,
        collected: BytesMut,
        /// The error of the attempt to stream, reported if the file is too large.
        stream_error: FileError,
    },
}

impl<'a> PendingFile<'a> {
    pub(super) async fn begin(files: &'a Files, path: &'a Path) -> Result<Self, FileError> {
        match files.create(path).await {
            Ok(writer) => Ok(PendingFile::Stream(writer)),
            Err(stream_error)
                if matches!(
                    stream_error.executor_error(),
                    Some(Error::Unsupported { .. })
                ) =>
            {
                Ok(PendingFile::Whole {
                    files,
                    path,
                    collected: BytesMut::new(),
                    stream_error,
                })
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn put(&mut self, bytes: Bytes) -> Result<(), FileError> {
        match self {
            PendingFile::Stream(writer) => writer.put(bytes).await,
            PendingFile::Whole {
                collected,
                stream_error,
                ..
            } => {
                if collected.len() + bytes.len() > WHOLE_BYTES {
                    return Err(stream_error.clone());
                }
                collected.extend_from_slice(&bytes);
                Ok(())
            }
        }
    }

    /// Completes the file.
    pub(super) async fn finish(self) -> Result<(), FileError> {
        match self {
            PendingFile::Stream(writer) => writer.commit().await,
            PendingFile::Whole {
                files,
                path,
                collected,
                ..
            } => files.write(path, collected.freeze()).await,
        }
    }
}
