//! Lists a directory.

use std::path::Path;

use outpost_types::{DirectoryEntry, Symlinks};
use rustix::fs::{FileType, Mode, OFlags};

use crate::names::{sorted_names, target_of};
use crate::omitted_names::OmittedNames;
use crate::{Files, FilesError};

impl Files {
    /// The entries of a directory, sorted by name.
    pub fn read_directory(&self, path: &Path) -> Result<Vec<DirectoryEntry>, FilesError> {
        self.read_directory_without(path, &OmittedNames::default())
    }

    /// The entries of a directory except for the `omitted` names.
    pub(crate) fn read_directory_without(
        &self,
        path: &Path,
        omitted: &OmittedNames,
    ) -> Result<Vec<DirectoryEntry>, FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = self.open_path(path, flags, Mode::empty(), Symlinks::Follow)?;
        let names = sorted_names(&directory, self.limits.directory_entries, omitted)?;
        let entries = names.into_iter().map(|name| {
            let target = target_of(&directory, &name);
            DirectoryEntry {
                // The wire has no form for other names, but they must show up.
                file_name: name.text.to_string_lossy().into_owned(),
                is_directory: target == Some(FileType::Directory),
                is_file: target == Some(FileType::RegularFile),
                is_broken_link: target.is_none(),
            }
        });
        Ok(entries.collect())
    }
}
