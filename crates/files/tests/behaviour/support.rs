//! What the tests share.

use std::fs;
use std::path::{Path, PathBuf};

use outpost_files::{ErrorKind, Files, FilesError, Means};
use tempfile::TempDir;

/// A folder of a test's own.
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

    /// Makes a file, and the directories above it.
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

    /// All names in a directory of it, sorted.
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

/// The operations, once for each way to refuse links.
pub(crate) fn by_all_means() -> [Files; 2] {
    [Means::Kernel, Means::Walk].map(|means| Files::default().by(means))
}

/// Kind and words of a failure.
#[track_caller]
pub(crate) fn why<T: std::fmt::Debug>(result: Result<T, FilesError>) -> (ErrorKind, String) {
    let error = result.expect_err("it should have failed");
    (error.kind(), error.to_string())
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, FilesError>, words: &str) {
    assert_eq!(why(result), (ErrorKind::Invalid, words.to_owned()));
}

#[track_caller]
pub(crate) fn missing<T: std::fmt::Debug>(result: Result<T, FilesError>) {
    let words = "No such file or directory (os error 2)".to_owned();
    assert_eq!(why(result), (ErrorKind::NotFound, words));
}

#[track_caller]
pub(crate) fn failed<T: std::fmt::Debug>(result: Result<T, FilesError>, words: &str) {
    assert_eq!(why(result), (ErrorKind::Failed, words.to_owned()));
}
