//! Copies one file.

use std::path::Path;

use anyhow::Context;
use bytes::{Bytes, BytesMut};
use outpost_client::{Error, FileError, FileErrorKind, FileWriter, Files};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Stdout};

use super::{CopyProgress, FileLocation};

/// Maximum number of attempts to copy a file whose connection is lost.
const ATTEMPTS: usize = 5;
/// Maximum file size for a server without write streams: one message.
const WHOLE_BYTES: usize = 32 * 1024 * 1024;
/// Chunk size for reading stdin.
const CHUNK_BYTES: usize = 256 * 1024;

/// Copies a file between executors. The copy appears when it is complete. After a lost connection,
/// the file is copied from its beginning.
pub(super) async fn file_to_file(
    from: (&Files, &Path),
    to: (&Files, &Path),
    progress: &CopyProgress,
) -> Result<(), FileError> {
    let mut left = ATTEMPTS;
    loop {
        let mut moved = 0;
        let copied = try_file_to_file(from, to, |count| {
            moved += count;
            progress.add_bytes(count);
        });
        match copied.await {
            Ok(()) => break,
            Err(error) if is_transient(&error) && left > 1 => {
                left -= 1;
                progress.subtract_bytes(moved);
            }
            Err(error) => return Err(error),
        }
    }
    progress.file_copied();
    Ok(())
}

/// Returns whether a retry makes sense.
fn is_transient(error: &FileError) -> bool {
    matches!(
        error.kind(),
        FileErrorKind::Interrupted | FileErrorKind::Unknown | FileErrorKind::Changed
    )
}

async fn try_file_to_file(
    from: (&Files, &Path),
    to: (&Files, &Path),
    mut moved: impl FnMut(usize),
) -> Result<(), FileError> {
    let mut reader = from.0.open(from.1).await?;
    let mut file = CopySink::begin(to.0, to.1).await?;
    loop {
        let bytes = reader.next_bytes().await?;
        let count = bytes.len();
        if count == 0 {
            break;
        }
        file.put(bytes).await?;
        moved(count);
    }
    file.finish().await
}

/// Copies a file to stdout. After an error, stdout has everything up to it.
pub(crate) async fn file_to_stdout(
    from: &FileLocation,
    output: &mut Stdout,
    progress: &CopyProgress,
) -> anyhow::Result<()> {
    let copying = async {
        let mut reader = from.files.open(&from.path).await?;
        loop {
            let bytes = reader.next_bytes().await?;
            if bytes.is_empty() {
                return anyhow::Ok(());
            }
            output.write_all(&bytes).await?;
            progress.add_bytes(bytes.len());
        }
    };
    let copied = copying.await;
    output.flush().await?;
    copied?;
    progress.file_copied();
    Ok(())
}

/// Copies stdin to a file.
pub(super) async fn stdin_to_file(
    to: (&Files, &Path),
    progress: &CopyProgress,
) -> anyhow::Result<()> {
    let mut input = tokio::io::stdin();
    let mut file = CopySink::begin(to.0, to.1).await?;
    loop {
        let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
        let read = input.read_buf(&mut chunk).await;
        let read = read.context("cannot read standard input")?;
        if read == 0 {
            break;
        }
        file.put(chunk.freeze()).await?;
        progress.add_bytes(read);
    }
    file.finish().await?;
    progress.file_copied();
    Ok(())
}

/// An incomplete copy.
enum CopySink<'a> {
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

impl<'a> CopySink<'a> {
    async fn begin(files: &'a Files, path: &'a Path) -> Result<Self, FileError> {
        match files.create(path).await {
            Ok(writer) => Ok(CopySink::Stream(writer)),
            Err(error) => match error.executor_error() {
                Some(Error::Unsupported { .. }) => Ok(CopySink::Whole {
                    files,
                    path,
                    collected: BytesMut::new(),
                    stream_error: error,
                }),
                _ => Err(error),
            },
        }
    }

    async fn put(&mut self, bytes: Bytes) -> Result<(), FileError> {
        match self {
            CopySink::Stream(writer) => writer.put(bytes).await,
            CopySink::Whole {
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
    async fn finish(self) -> Result<(), FileError> {
        match self {
            CopySink::Stream(writer) => writer.commit().await,
            CopySink::Whole {
                files,
                path,
                collected,
                ..
            } => files.write(path, collected.freeze()).await,
        }
    }
}
