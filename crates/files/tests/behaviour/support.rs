//! Support for the tests.

use std::fs;
use std::path::{Path, PathBuf};

use outpost_files::{Files, FilesError, SymlinkCheck};
use outpost_types::FileErrorKind;
use tempfile::TempDir;

/// A temporary directory.
pub(crate) struct Folder {
    folder: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Folder {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Creates a file and its parent directories.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        path
    }

    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).expect("directories");
        path
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) -> PathBuf {
        let path = self.path(name);
        std::os::unix::fs::symlink(target, &path).expect("a link");
        path
    }

    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a FIFO");
        path
    }

    /// The sorted names in one of its directories.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).expect("a directory");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// The operations, once for each way to detect symbolic links.
pub(crate) fn with_each_symlink_check() -> [Files; 2] {
    [SymlinkCheck::Kernel, SymlinkCheck::Walk]
        .map(|means| Files::default().with_symlink_check(means))
}

/// The kind and the message of an error.
#[track_caller]
pub(crate) fn failure<T: std::fmt::Debug>(
    result: Result<T, FilesError>,
) -> (FileErrorKind, String) {
    let error = result.expect_err("an error");
    (error.kind(), error.to_string())
}

#[track_caller]
pub(crate) fn rejected<T: std::fmt::Debug>(result: Result<T, FilesError>, message: &str) {
    assert_eq!(
        failure(result),
        (FileErrorKind::Invalid, message.to_owned())
    );
}

#[track_caller]
pub(crate) fn missing<T: std::fmt::Debug>(result: Result<T, FilesError>) {
    let message = "No such file or directory (os error 2)".to_owned();
    assert_eq!(failure(result), (FileErrorKind::NotFound, message));
}

#[track_caller]
pub(crate) fn failed<T: std::fmt::Debug>(result: Result<T, FilesError>, message: &str) {
    assert_eq!(failure(result), (FileErrorKind::Failed, message.to_owned()));
}
