//! Names that are left out wherever the directory they are in is read.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::Errno;

use crate::identity::Identity;

/// By the directory they are in, which may be come upon by any way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps(HashMap<Identity, Vec<OsString>>);

impl Gaps {
    /// These paths. Where nobody can look there is nothing to leave out.
    pub(crate) fn at<'a>(paths: impl Iterator<Item = &'a Path>) -> Self {
        let mut gaps: HashMap<_, Vec<_>> = HashMap::new();
        for (parent, name) in paths.filter_map(|path| path.parent().zip(path.file_name())) {
            if let Ok(stat) = statat(CWD, parent, AtFlags::empty()) {
                let names = gaps.entry(Identity::from(&stat)).or_default();
                names.push(name.to_owned());
            }
        }
        Gaps(gaps)
    }

    /// What is left out of a directory.
    pub(crate) fn of(&self, directory: impl AsFd) -> Result<Vec<OsString>, Errno> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let names = self.0.get(&Identity::of(directory)?);
        Ok(names.cloned().unwrap_or_default())
    }
}
