//! Names that are left out when their directory is read.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::Errno;

use crate::identity::Identity;

/// The omitted names by the identity of their directory, which may be reached by any path.
#[derive(Clone, Debug, Default)]
pub(crate) struct OmittedNames(HashMap<Identity, Vec<OsString>>);

impl OmittedNames {
    /// Omits these paths. A path whose parent is not accessible cannot be listed anyway.
    pub(crate) fn new<'a>(paths: impl Iterator<Item = &'a Path>) -> Self {
        let mut by_directory: HashMap<_, Vec<_>> = HashMap::new();
        for (parent, name) in paths.filter_map(|path| path.parent().zip(path.file_name())) {
            if let Ok(stat) = statat(CWD, parent, AtFlags::empty()) {
                let names = by_directory.entry(Identity::from(&stat)).or_default();
                names.push(name.to_owned());
            }
        }
        OmittedNames(by_directory)
    }

    /// The names to leave out of a directory.
    pub(crate) fn in_directory(&self, directory: impl AsFd) -> Result<Vec<OsString>, Errno> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let names = self.0.get(&Identity::of(directory)?);
        Ok(names.cloned().unwrap_or_default())
    }
}
