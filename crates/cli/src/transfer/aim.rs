//! What a copy is called, as cp(1) has it.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// What there is at the destination before anything is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum There {
    Nothing,
    Directory,
    File,
}

/// Why there is no name for a copy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Astray {
    #[error("is not a directory")]
    NotADirectory,
    #[error("is a file, and can't be replaced by a directory")]
    IsAFile,
    #[error("is a directory, and the input has no name there")]
    Nameless,
    #[error("cannot copy {from:?}: {to:?} was just copied from elsewhere")]
    Repeated { from: PathBuf, to: PathBuf },
}

/// Where the copies go.
#[derive(Clone, Debug)]
pub(super) struct Aim {
    destination: PathBuf,
    there: There,
    /// More than one thing is copied, or the destination says that it is a
    /// directory: then it has to be one.
    wants_directory: bool,
    slash: bool,
    /// What files were called so far: one copy must not replace another.
    given: HashSet<PathBuf>,
}

impl Aim {
    pub(super) fn new(destination: &Path, there: There, sources: usize) -> Self {
        Aim {
            destination: destination.to_owned(),
            there,
            wants_directory: sources > 1,
            slash: destination.as_os_str().as_bytes().ends_with(b"/"),
            given: HashSet::new(),
        }
    }

    /// What the copy of a file is called; no other may be called that.
    pub(super) fn of_file(&mut self, source: Option<&Path>) -> Result<PathBuf, Astray> {
        let to = match self.there {
            There::Directory => match source.and_then(name_of) {
                Some(name) => self.destination.join(name),
                None => return Err(Astray::Nameless),
            },
            _ if self.wants_directory || self.slash => return Err(Astray::NotADirectory),
            _ => self.destination.clone(),
        };
        match self.given.insert(to.clone()) {
            true => Ok(to),
            false => Err(Astray::Repeated {
                from: source.unwrap_or(Path::new("-")).to_owned(),
                to,
            }),
        }
    }

    /// What the copy of a directory is called. Several may go into the same one.
    pub(super) fn of_directory(&self, source: &Path) -> Result<PathBuf, Astray> {
        match self.there {
            There::Directory => Ok(match name_of(source) {
                Some(name) => self.destination.join(name),
                // `cp -r dir/. there` is about what is in it.
                None => self.destination.clone(),
            }),
            There::File => Err(Astray::IsAFile),
            There::Nothing if self.wants_directory => Err(Astray::NotADirectory),
            There::Nothing => Ok(self.destination.clone()),
        }
    }
}

/// The last name of a path; none if that is `.`, `..` or the root.
fn name_of(path: &Path) -> Option<OsString> {
    let bytes = path.as_os_str().as_bytes();
    let trimmed = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == b'/').count();
    let name = bytes[..trimmed].rsplit(|byte| *byte == b'/').next()?;
    let dots = name.is_empty() || name == b"." || name == b"..";
    (!dots).then(|| OsStr::from_bytes(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aim(destination: &str, there: There, sources: usize) -> Aim {
        Aim::new(Path::new(destination), there, sources)
    }

    #[test]
    fn what_the_copy_of_a_file_is_called() {
        let file = |mut aim: Aim, source: &str| aim.of_file(Some(Path::new(source)));
        let ok = |path: &str| Ok(PathBuf::from(path));
        assert_eq!(file(aim("d", There::Nothing, 1), "a/f"), ok("d"));
        assert_eq!(file(aim("d", There::File, 1), "a/f"), ok("d"));
        assert_eq!(file(aim("d", There::Directory, 1), "a/f"), ok("d/f"));
        assert_eq!(file(aim("d/", There::Directory, 2), "f"), ok("d/f"));
        let no = Err(Astray::NotADirectory);
        assert_eq!(file(aim("d/", There::Nothing, 1), "f"), no);
        assert_eq!(file(aim("d", There::Nothing, 2), "f"), no);
        assert_eq!(file(aim("d", There::File, 2), "f"), no);
    }

    #[test]
    fn two_files_have_two_names() {
        let mut aim = aim("d", There::Directory, 3);
        let mut of = |source: &str| aim.of_file(Some(Path::new(source)));
        assert_eq!(of("a/f"), Ok(PathBuf::from("d/f")));
        assert_eq!(of("a/g"), Ok(PathBuf::from("d/g")));
        let repeated = Astray::Repeated {
            from: "b/f".into(),
            to: "d/f".into(),
        };
        assert_eq!(of("b/f"), Err(repeated));
    }

    #[test]
    fn what_the_copy_of_our_input_is_called() {
        assert_eq!(
            aim("d", There::Nothing, 1).of_file(None),
            Ok(PathBuf::from("d"))
        );
        assert_eq!(
            aim("d", There::Directory, 1).of_file(None),
            Err(Astray::Nameless)
        );
    }

    #[test]
    fn what_the_copy_of_a_directory_is_called() {
        let directory = |aim: Aim, source: &str| aim.of_directory(Path::new(source));
        let ok = |path: &str| Ok(PathBuf::from(path));
        assert_eq!(directory(aim("d", There::Nothing, 1), "a/b"), ok("d"));
        assert_eq!(directory(aim("d/", There::Nothing, 1), "a/b"), ok("d/"));
        for source in ["a/b", "a/b/", "b//"] {
            assert_eq!(directory(aim("d", There::Directory, 1), source), ok("d/b"));
        }
        for source in ["a/b/.", ".", "..", "/", "a/.."] {
            assert_eq!(directory(aim("d", There::Directory, 1), source), ok("d"));
        }
        assert_eq!(
            directory(aim("d", There::File, 1), "a"),
            Err(Astray::IsAFile)
        );
        assert_eq!(
            directory(aim("d", There::Nothing, 2), "a"),
            Err(Astray::NotADirectory)
        );
    }
}
