//! What is being written at the destination.

use std::path::Path;

use bytes::{Bytes, BytesMut};
use outpost_client::{Error, FileError, FileWriter, Files};

/// How much of a file is collected for a server that only takes whole ones: what fits
/// into one message.
const WHOLE_BYTES: usize = 32 * 1024 * 1024;

/// A copy that isn't complete yet.
pub(super) enum Draft<'a> {
    /// It takes the place of the old file when it is complete.
    Stream(FileWriter),
    /// The server knows no streams: it is written at once, when all of it is here.
    Whole {
        files: &'a Files,
        path: &'a Path,
        collected: BytesMut,
        /// Why it isn't a stream, which is also why it can't be larger.
        refused: FileError,
    },
}

impl<'a> Draft<'a> {
    pub(super) async fn begin(files: &'a Files, path: &'a Path) -> Result<Self, FileError> {
        match files.create(path).await {
            Ok(writer) => Ok(Draft::Stream(writer)),
            Err(refused) if matches!(refused.place(), Some(Error::NotAnnounced { .. })) => {
                Ok(Draft::Whole {
                    files,
                    path,
                    collected: BytesMut::new(),
                    refused,
                })
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn put(&mut self, bytes: Bytes) -> Result<(), FileError> {
        match self {
            Draft::Stream(writer) => writer.put(bytes).await,
            Draft::Whole {
                collected, refused, ..
            } => {
                if collected.len() + bytes.len() > WHOLE_BYTES {
                    return Err(refused.clone());
                }
                collected.extend_from_slice(&bytes);
                Ok(())
            }
        }
    }

    /// There is nothing more of it.
    pub(super) async fn finish(self) -> Result<(), FileError> {
        match self {
            Draft::Stream(writer) => writer.commit().await,
            Draft::Whole {
                files,
                path,
                collected,
                ..
            } => files.write(path, collected.freeze()).await,
        }
    }
}
