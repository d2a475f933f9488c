//! A file that takes another's place.

use std::path::Path;

use bytes::Bytes;
use outpost_client::{Error, FileError, Files};

/// Makes `bytes` all that is in a file, all at once for whoever looks, with the
/// mode of what was there.
pub(super) async fn replace(files: &Files, path: &Path, bytes: Vec<u8>) -> Result<(), FileError> {
    match files.create(path).await {
        Ok(mut draft) => {
            draft.put(Bytes::from(bytes)).await?;
            draft.commit().await
        }
        // Older servers can only write into it.
        Err(error) if matches!(error.place(), Some(Error::NotAnnounced { .. })) => {
            files.write(path, bytes).await
        }
        Err(error) => Err(error),
    }
}
