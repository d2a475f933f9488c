//! One file is brought over.

use std::path::Path;

use anyhow::Context;
use bytes::BytesMut;
use outpost_client::{FileError, FileErrorKind, Files};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{Tally, draft::Draft};

/// How often a file is begun whose connection is lost again and again.
const ATTEMPTS: usize = 5;
/// How much of our own input is read at once.
const PIECE_BYTES: usize = 256 * 1024;

/// From one place to another. The copy appears when it is complete. What was
/// written is gone with a lost connection; once that is back, the file is copied
/// from its beginning.
pub(super) async fn file_to_file(
    from: (&Files, &Path),
    to: (&Files, &Path),
    tally: &Tally,
) -> Result<(), FileError> {
    let mut left = ATTEMPTS;
    loop {
        let mut moved = 0;
        let copied = try_file_to_file(from, to, |count| {
            moved += count;
            tally.moved(count);
        });
        match copied.await {
            Ok(()) => break,
            Err(error) if is_passing(&error) && left > 1 => {
                left -= 1;
                tally.lost(moved);
            }
            Err(error) => return Err(error),
        }
    }
    tally.done();
    Ok(())
}

/// Whether the same file may be copied again, and should be.
fn is_passing(error: &FileError) -> bool {
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
    let mut draft = Draft::begin(to.0, to.1).await?;
    loop {
        let bytes = reader.next_bytes().await?;
        let count = bytes.len();
        if count == 0 {
            break;
        }
        draft.put(bytes).await?;
        moved(count);
    }
    draft.finish().await
}

/// From a place to our own output.
pub(super) async fn file_to_stream(
    from: (&Files, &Path),
    output: &mut (impl AsyncWrite + Unpin),
    tally: &Tally,
) -> anyhow::Result<()> {
    let mut reader = from.0.open(from.1).await?;
    loop {
        let bytes = reader.next_bytes().await?;
        if bytes.is_empty() {
            break;
        }
        output.write_all(&bytes).await?;
        tally.moved(bytes.len());
    }
    output.flush().await?;
    tally.done();
    Ok(())
}

/// From our own input to a place.
pub(super) async fn stream_to_file(
    input: &mut (impl AsyncRead + Unpin),
    to: (&Files, &Path),
    tally: &Tally,
) -> anyhow::Result<()> {
    let mut draft = Draft::begin(to.0, to.1).await?;
    loop {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        let read = input.read_buf(&mut piece).await;
        let read = read.context("cannot read standard input")?;
        if read == 0 {
            break;
        }
        draft.put(piece.freeze()).await?;
        tally.moved(read);
    }
    draft.finish().await?;
    tally.done();
    Ok(())
}
