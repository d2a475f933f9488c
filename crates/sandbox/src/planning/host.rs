//! The file system of this host.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Instant,
};

use rustix::io::Errno;

use super::{Kind, View};
use crate::{
    Access, Identity, Plan,
    linux::{place, placeholder},
};

/// This host, as the calling process sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host;

impl Host {
    /// Where something stands just now that only keeps a path of this plan absent. Whoever is confined
    /// to the plan finds a directory there which isn't one.
    #[must_use]
    pub fn placeholders(&self, plan: &Plan) -> Vec<PathBuf> {
        let kept = plan.rules.iter().filter(|rule| rule.access == Access::Read);
        let kept = kept.filter(|rule| placeholder::is_one_at(&rule.path));
        kept.map(|rule| rule.path.clone()).collect()
    }
}

impl View for Host {
    fn look(&self, path: &Path) -> io::Result<Kind> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found.file_type(),
            Err(error) if is_absence(&error) => return Ok(Kind::Absent),
            Err(error) => return Err(error),
        };
        if found.is_symlink() {
            return fs::read_link(path).map(Kind::Link);
        }
        Ok(if found.is_dir() {
            Kind::Directory
        } else {
            Kind::File
        })
    }

    fn identify(&self, path: &Path) -> io::Result<Option<Identity>> {
        let opened = place::follow(path).map_err(Errno::from)?;
        Ok(Some(place::identity(&opened)?))
    }

    fn list(&self, directory: &Path, at_most: usize) -> io::Result<Vec<(OsString, bool)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)?.take(at_most) {
            let entry = entry?;
            // Not every file system tells along with the names, and a directory that lets nobody
            // through doesn't tell at all.
            let is_directory = match entry.file_type() {
                Ok(kind) => kind.is_dir(),
                Err(error) if is_absence(&error) => continue,
                Err(error) => return Err(error),
            };
            found.push((entry.file_name(), is_directory));
        }
        Ok(found)
    }

    fn is_ours(&self, directory: &Path) -> bool {
        let own = rustix::process::geteuid().as_raw();
        // What has gone meanwhile may come back as anybody's.
        fs::symlink_metadata(directory).map_or(true, |found| found.uid() == own)
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
