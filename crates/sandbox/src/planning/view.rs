//! The file system, as far as planning looks at it.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::Identity;

/// What planning asks of a file system.
pub trait View {
    /// What is at a path whose parent directories are no links. A link is not followed.
    fn look(&self, path: &Path) -> io::Result<Kind>;

    /// Which thing is at a path without links; none if the view can't tell things apart. A link on
    /// the way is an error.
    fn identify(&self, path: &Path) -> io::Result<Option<Identity>>;

    /// What is in a directory, and whether each is a directory itself: so many of them at most.
    fn list(&self, directory: &Path, at_most: usize) -> io::Result<Vec<(OsString, bool)>>;

    /// Whether a directory is our own, so that whoever runs as we do can open it and close it.
    fn is_ours(&self, directory: &Path) -> bool;

    /// What time it is: looking may take only so long.
    fn now(&self) -> Instant;
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A symbolic link, and what it says.
    Link(PathBuf),
    /// Anything else that exists.
    File,
    /// Nothing.
    Absent,
}
