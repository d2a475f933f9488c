//! Removing what a path names.

use std::path::Path;

use rustix::fs::{AtFlags, FileType, statat, unlinkat};
use rustix::io::Errno;

use crate::identity::file_type;
use crate::remove_tree::remove_tree;
use crate::{Files, FilesError, Links};

/// How something is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remove {
    /// A directory with everything below it, instead of an empty one alone.
    pub recursive: bool,
    /// What isn't there counts as removed.
    pub force: bool,
    /// Whether there may be links on the way, the last name included.
    pub links: Links,
}

impl Files {
    /// Removes a file, a link or a directory. Of a link it is the link, never what that leads to.
    pub fn remove(&self, path: &Path, how: Remove) -> Result<(), FilesError> {
        match self.remove_if_there(path, how) {
            Err(error) if how.force && error.is(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    fn remove_if_there(&self, path: &Path, how: Remove) -> Result<(), FilesError> {
        let (parent, name) = self.open_parent(path, how.links)?;
        let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match file_type(&stat) {
            FileType::Symlink if how.links == Links::Refuse => Err(FilesError::SymbolicLink),
            FileType::Directory if how.recursive => remove_tree(parent, name),
            FileType::Directory => Ok(unlinkat(&parent, name, AtFlags::REMOVEDIR)?),
            _ => Ok(unlinkat(&parent, name, AtFlags::empty())?),
        }
    }
}
