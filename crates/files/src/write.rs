//! Overwrites a file in place.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use outpost_types::Symlinks;

use crate::regular::check_size;
use crate::{Files, FilesError};

impl Files {
    /// Replaces the content of a regular file with `bytes`. Creates the file if it does not exist. An
    /// existing file keeps its inode, and with it its hard symlinks, mode and owner.
    pub fn write(&self, path: &Path, bytes: &[u8], symlinks: Symlinks) -> Result<(), FilesError> {
        check_size(bytes.len() as u64)?;
        replace_content(self.open_to_write(path, symlinks)?, bytes)
    }
}

/// Replaces the content of an open file.
pub(crate) fn replace_content(mut file: File, bytes: &[u8]) -> Result<(), FilesError> {
    file.set_len(0)?;
    file.write_all(bytes)?;
    Ok(())
}
