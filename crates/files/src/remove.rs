//! Removes files, symbolic links and directories.

use std::path::Path;

use outpost_types::Symlinks;
use rustix::fs::{AtFlags, FileType, statat, unlinkat};
use rustix::io::Errno;

use crate::identity::file_type;
use crate::remove_tree::remove_tree;
use crate::{Files, FilesError};

/// Options of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remove {
    /// Whether a directory is removed with its content; otherwise it must be empty.
    pub recursive: bool,
    /// Whether a missing path counts as removed.
    pub force: bool,
    /// How symbolic links in the path are treated, the last component included.
    pub symlinks: Symlinks,
}

impl Files {
    /// Removes a file, a symbolic link (not its target) or a directory.
    pub fn remove(&self, path: &Path, options: Remove) -> Result<(), FilesError> {
        match self.remove_existing(path, options) {
            Err(error) if options.force && error.is(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    fn remove_existing(&self, path: &Path, options: Remove) -> Result<(), FilesError> {
        let (parent, name) = self.open_parent(path, options.symlinks)?;
        let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match file_type(&stat) {
            FileType::Symlink if options.symlinks == Symlinks::Reject => {
                Err(FilesError::SymbolicLink)
            }
            FileType::Directory if options.recursive => remove_tree(parent, name),
            FileType::Directory => Ok(unlinkat(&parent, name, AtFlags::REMOVEDIR)?),
            _ => Ok(unlinkat(&parent, name, AtFlags::empty())?),
        }
    }
}
