//! What is in a directory.

use std::ffi::OsString;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use crate::gaps::Gaps;
use crate::names::{sorted_names, target_of};
use crate::{Files, FilesError, Links};

/// Something in a directory. A link counts as its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// What it is called there: bytes, in any encoding.
    pub name: OsString,
    /// A directory.
    pub is_directory: bool,
    /// A regular file.
    pub is_file: bool,
    /// A link that leads nowhere, and so is neither.
    pub is_broken_link: bool,
}

impl Files {
    /// What is in a directory, by name.
    pub fn read_directory(&self, path: &Path) -> Result<Vec<DirectoryEntry>, FilesError> {
        self.read_directory_but(path, &Gaps::default())
    }

    /// The same without names that are to be left out.
    pub(crate) fn read_directory_but(
        &self,
        path: &Path,
        gaps: &Gaps,
    ) -> Result<Vec<DirectoryEntry>, FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = self.open_path(path, flags, Mode::empty(), Links::Follow)?;
        let names = sorted_names(&directory, self.limits.directory_entries, gaps)?;
        let entries = names.into_iter().map(|name| {
            let target = target_of(&directory, &name);
            DirectoryEntry {
                name: name.text,
                is_directory: target == Some(FileType::Directory),
                is_file: target == Some(FileType::RegularFile),
                is_broken_link: target.is_none(),
            }
        });
        Ok(entries.collect())
    }
}
