//! Support for the tests.

use std::fs;
use std::path::{Path, PathBuf};

use outpost_files::{FileExecutor, Files, FilesError, OpenFile, SymlinkCheck, Writer};
use outpost_types::{
    DirectoryEntry, FileErrorKind, FileMetadata, FileOp, FileReply, FsCanonicalizeParams,
    FsCopyParams, FsCreateDirectoryParams, FsGetMetadataParams, FsReadDirectoryParams,
    FsRemoveParams, FsWalkParams, PathUri, Symlinks, UnexpectedReply, WalkOptions, WalkResult,
};
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

/// Options of [`FilesExt::remove`].
#[derive(Clone, Copy)]
pub(crate) struct Remove {
    pub(crate) recursive: bool,
    pub(crate) force: bool,
    pub(crate) symlinks: Symlinks,
}

/// The operations as functions of native paths, through an executor in this process.
pub(crate) trait FilesExt {
    fn executor(&self) -> FileExecutor;

    fn perform<T>(&self, op: FileOp) -> Result<T, FilesError>
    where
        T: TryFrom<FileReply, Error = UnexpectedReply>,
    {
        let reply = self.executor().perform(op)?;
        Ok(T::try_from(reply).expect("the reply of the operation"))
    }

    fn open(&self, path: &Path, symlinks: Symlinks) -> Result<OpenFile, FilesError> {
        self.executor().open(&PathUri::from_path(path), symlinks)
    }

    fn read(&self, path: &Path, symlinks: Symlinks) -> Result<Vec<u8>, FilesError> {
        self.executor().read(&PathUri::from_path(path), symlinks)
    }

    fn write(&self, path: &Path, bytes: &[u8], symlinks: Symlinks) -> Result<(), FilesError> {
        let path = PathUri::from_path(path);
        self.executor().write(&path, bytes, symlinks)
    }

    fn create_stream(&self, path: &Path) -> Result<Writer, FilesError> {
        self.executor().create_stream(&PathUri::from_path(path))
    }

    fn create_directory(
        &self,
        path: &Path,
        recursive: bool,
        symlinks: Symlinks,
    ) -> Result<(), FilesError> {
        self.perform(FileOp::CreateDirectory(FsCreateDirectoryParams {
            path: PathUri::from_path(path),
            recursive,
            symlinks,
        }))
    }

    fn metadata(&self, path: &Path, symlinks: Symlinks) -> Result<FileMetadata, FilesError> {
        let path = PathUri::from_path(path);
        self.perform(FileOp::GetMetadata(FsGetMetadataParams { path, symlinks }))
    }

    fn canonicalize(&self, path: &Path) -> Result<PathBuf, FilesError> {
        let path = PathUri::from_path(path);
        self.perform(FileOp::Canonicalize(FsCanonicalizeParams { path }))
    }

    /// Lists symbolic links without a target too.
    fn read_directory(&self, path: &Path) -> Result<Vec<DirectoryEntry>, FilesError> {
        self.perform(FileOp::ReadDirectory(FsReadDirectoryParams {
            path: PathUri::from_path(path),
            broken_links: true,
        }))
    }

    fn walk(&self, path: &Path, options: WalkOptions) -> Result<WalkResult, FilesError> {
        let path = PathUri::from_path(path);
        self.perform(FileOp::Walk(FsWalkParams { path, options }))
    }

    fn remove(&self, path: &Path, options: Remove) -> Result<(), FilesError> {
        self.perform(FileOp::Remove(FsRemoveParams {
            path: PathUri::from_path(path),
            recursive: options.recursive,
            force: options.force,
            symlinks: options.symlinks,
        }))
    }

    fn copy(&self, source: &Path, destination: &Path, recursive: bool) -> Result<(), FilesError> {
        self.perform(FileOp::Copy(FsCopyParams {
            source_path: PathUri::from_path(source),
            destination_path: PathUri::from_path(destination),
            recursive,
        }))
    }
}

impl FilesExt for Files {
    fn executor(&self) -> FileExecutor {
        FileExecutor::in_process(*self)
    }
}
