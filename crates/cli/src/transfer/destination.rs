//! Names of copies, by the rules of cp(1).

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// Kind of the destination before the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Nothing,
    Directory,
    File,
}

/// Why a copy can't have a name at the destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DestinationError {
    #[error("{0:?} is not a directory")]
    NotADirectory(PathBuf),
    #[error("{0:?} is a file and can't be replaced by a directory")]
    IsAFile(PathBuf),
    #[error("{0:?} is a directory; name a file to copy stdin to")]
    NoName(PathBuf),
    #[error("cannot copy {from:?}: {to:?} was just created from another source")]
    Duplicate { from: PathBuf, to: PathBuf },
}

/// Assigns names at the destination.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    destination: PathBuf,
    existing: Existing,
    /// The destination must be a directory, because there are several sources.
    wants_directory: bool,
    has_trailing_slash: bool,
    /// Names assigned so far: a copy must not replace another copy.
    assigned: HashSet<PathBuf>,
}

impl Destination {
    pub(super) fn new(destination: &Path, existing: Existing, sources: usize) -> Self {
        Destination {
            destination: destination.to_owned(),
            existing,
            wants_directory: sources > 1,
            has_trailing_slash: destination.as_os_str().as_bytes().ends_with(b"/"),
            assigned: HashSet::new(),
        }
    }

    /// The path for the copy of a file. Each path is assigned once.
    pub(super) fn for_file(&mut self, source: Option<&Path>) -> Result<PathBuf, DestinationError> {
        let to = match self.existing {
            Existing::Directory => match source.and_then(last_component) {
                Some(name) => self.destination.join(name),
                None => return Err(DestinationError::NoName(self.destination.clone())),
            },
            _ if self.wants_directory || self.has_trailing_slash => {
                return Err(DestinationError::NotADirectory(self.destination.clone()));
            }
            _ => self.destination.clone(),
        };
        if !self.assigned.insert(to.clone()) {
            let from = source.unwrap_or(Path::new("-")).to_owned();
            return Err(DestinationError::Duplicate { from, to });
        }
        Ok(to)
    }

    /// The path for the copy of a directory. Several sources may share one.
    pub(super) fn for_directory(&self, source: &Path) -> Result<PathBuf, DestinationError> {
        match self.existing {
            Existing::Directory => Ok(match last_component(source) {
                Some(name) => self.destination.join(name),
                // `cp -r dir/. there` copies the content of `dir`.
                None => self.destination.clone(),
            }),
            Existing::File => Err(DestinationError::IsAFile(self.destination.clone())),
            Existing::Nothing if self.wants_directory => {
                Err(DestinationError::NotADirectory(self.destination.clone()))
            }
            Existing::Nothing => Ok(self.destination.clone()),
        }
    }
}

/// The last component of a path; none for `.`, `..` and the root.
fn last_component(path: &Path) -> Option<OsString> {
    let bytes = path.as_os_str().as_bytes();
    let trimmed = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == b'/').count();
    let name = bytes[..trimmed].rsplit(|byte| *byte == b'/').next()?;
    let dots = name.is_empty() || name == b"." || name == b"..";
    (!dots).then(|| OsStr::from_bytes(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(destination: &str, existing: Existing, sources: usize) -> Destination {
        Destination::new(Path::new(destination), existing, sources)
    }

    #[test]
    fn file_copy_is_named_as_by_cp() {
        let file = |mut names: Destination, source: &str| names.for_file(Some(Path::new(source)));
        let ok = |path: &str| Ok(PathBuf::from(path));
        assert_eq!(file(names("d", Existing::Nothing, 1), "a/f"), ok("d"));
        assert_eq!(file(names("d", Existing::File, 1), "a/f"), ok("d"));
        assert_eq!(file(names("d", Existing::Directory, 1), "a/f"), ok("d/f"));
        assert_eq!(file(names("d/", Existing::Directory, 2), "f"), ok("d/f"));
        let no = |path: &str| Err(DestinationError::NotADirectory(path.into()));
        assert_eq!(file(names("d/", Existing::Nothing, 1), "f"), no("d/"));
        assert_eq!(file(names("d", Existing::Nothing, 2), "f"), no("d"));
        assert_eq!(file(names("d", Existing::File, 2), "f"), no("d"));
    }

    #[test]
    fn copies_never_share_a_name() {
        let mut names = names("d", Existing::Directory, 3);
        let mut of = |source: &str| names.for_file(Some(Path::new(source)));
        assert_eq!(of("a/f"), Ok(PathBuf::from("d/f")));
        assert_eq!(of("a/g"), Ok(PathBuf::from("d/g")));
        let repeated = DestinationError::Duplicate {
            from: "b/f".into(),
            to: "d/f".into(),
        };
        assert_eq!(of("b/f"), Err(repeated));
    }

    #[test]
    fn copy_of_stdin_needs_a_file_name() {
        assert_eq!(
            names("d", Existing::Nothing, 1).for_file(None),
            Ok(PathBuf::from("d"))
        );
        assert_eq!(
            names("d", Existing::Directory, 1).for_file(None),
            Err(DestinationError::NoName("d".into()))
        );
    }

    #[test]
    fn directory_copy_is_named_as_by_cp() {
        let directory = |names: Destination, source: &str| names.for_directory(Path::new(source));
        let ok = |path: &str| Ok(PathBuf::from(path));
        assert_eq!(directory(names("d", Existing::Nothing, 1), "a/b"), ok("d"));
        assert_eq!(
            directory(names("d/", Existing::Nothing, 1), "a/b"),
            ok("d/")
        );
        for source in ["a/b", "a/b/", "b//"] {
            assert_eq!(
                directory(names("d", Existing::Directory, 1), source),
                ok("d/b")
            );
        }
        for source in ["a/b/.", ".", "..", "/", "a/.."] {
            assert_eq!(
                directory(names("d", Existing::Directory, 1), source),
                ok("d")
            );
        }
        assert_eq!(
            directory(names("d", Existing::File, 1), "a"),
            Err(DestinationError::IsAFile("d".into()))
        );
        assert_eq!(
            directory(names("d", Existing::Nothing, 2), "a"),
            Err(DestinationError::NotADirectory("d".into()))
        );
    }
}
