//! The file system as planning sees it.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::Identity;

/// The queries of planning to a file system.
pub trait FileSystemView {
    /// Returns what is at a path, without following a symbolic link at its end. The parent directories
    /// must not be links.
    fn look(&self, path: &Path) -> io::Result<PathKind>;

    /// Returns the identity of the file at a path, if the view knows identities. A symbolic link in any
    /// component is an error.
    fn identify(&self, path: &Path) -> io::Result<Option<Identity>>;

    /// Lists up to `at_most` names in a directory, each with whether it is a directory.
    fn list(&self, directory: &Path, at_most: usize) -> io::Result<Vec<(OsString, bool)>>;

    /// Returns whether the server's user owns a directory, so that its processes can change its mode.
    fn is_ours(&self, directory: &Path) -> bool;

    /// Returns the current time, for the limit of a scan.
    fn now(&self) -> Instant;
}

/// The kind of file at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A directory.
    Directory,
    /// A symbolic link with its target.
    Link(PathBuf),
    /// Any other file.
    File,
    /// Nothing.
    Absent,
}
