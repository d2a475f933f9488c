//! Writing a whole file where it is.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use crate::regular::check_size;
use crate::{Files, FilesError, Links};

impl Files {
    /// Makes `bytes` all that is in a file. An existing file stays the file it is: its other names,
    /// its mode and its owner are kept, and nothing of it is touched unless it is a regular one.
    pub fn write(&self, path: &Path, bytes: &[u8], links: Links) -> Result<(), FilesError> {
        check_size(bytes.len() as u64)?;
        fill(self.open_to_write(path, links)?, bytes)
    }
}

/// Makes `bytes` all that is in an open file.
pub(crate) fn fill(mut file: File, bytes: &[u8]) -> Result<(), FilesError> {
    file.set_len(0)?;
    file.write_all(bytes)?;
    Ok(())
}
