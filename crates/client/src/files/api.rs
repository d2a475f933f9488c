//! The public interface to files.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use outpost_protocol::{
    DirectoryEntry, FileMetadata, FileOp, FileReply, FileRequest, FsCanonicalizeParams,
    FsCopyParams, FsCreateDirectoryParams, FsGetMetadataParams, FsReadDirectoryParams,
    FsRemoveParams, FsWalkParams, PathUri, SandboxParams, Symlinks, UnexpectedReply, WalkOptions,
    WalkResult,
};

use super::{
    BackendError, FileBackend, FileError, FileErrorKind, FileFuture, FileReader, FileTarget,
    FileWatch, FileWriter, WatchOptions, WatchQueue,
};

/// The largest content of one message. Larger files are read in blocks and written as streams.
const WHOLE_BYTES: u64 = 32 * 1024 * 1024;

/// The largest file that is read as a whole.
const MAX_READ_BYTES: usize = 512 * 1024 * 1024;

type Backend = Arc<dyn FileBackend>;

/// The files of an executor. Clones refer to the same files. Relative paths are resolved against the
/// working directory of the executor.
///
/// ```
/// use outpost_client::{FileErrorKind, Files};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), outpost_client::FileError> {
/// # let folder = std::env::temp_dir().join(format!("outpost-doc-{}", std::process::id()));
/// let files = Files::here();
/// files.create_directory(&folder, true).await?;
/// files.write(folder.join("greeting"), "hello").await?;
/// assert_eq!(files.read(folder.join("greeting")).await?, "hello");
/// let missing = files.metadata(folder.join("nothing")).await.unwrap_err();
/// assert_eq!(missing.kind(), FileErrorKind::NotFound);
/// files.remove(&folder, Default::default()).await
/// # }
/// ```
#[derive(Clone)]
pub struct Files {
    backend: Backend,
    symlinks: Symlinks,
    sandbox: Option<SandboxParams>,
}

/// Options of [`Files::remove`]. By default recursive and forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remove {
    /// Whether a directory is removed with its content; otherwise it must be empty.
    pub recursive: bool,
    /// Whether a missing path counts as removed.
    pub force: bool,
}

impl Default for Remove {
    fn default() -> Self {
        Remove {
            recursive: true,
            force: true,
        }
    }
}

impl Files {
    pub(crate) fn new(backend: Backend) -> Self {
        Files {
            backend,
            symlinks: Symlinks::Follow,
            sandbox: None,
        }
    }

    /// The files of this machine, without an executor for processes. The methods need a tokio
    /// runtime.
    #[cfg(feature = "local")]
    #[must_use]
    pub fn here() -> Self {
        Files::new(Arc::new(crate::local::LocalFileBackend::here()))
    }

    /// Rejects paths with a symbolic link in [`read`](Self::read), [`write`](Self::write),
    /// [`create_directory`](Self::create_directory), [`metadata`](Self::metadata) and
    /// [`remove`](Self::remove). The other operations follow links in any case.
    #[must_use]
    pub fn without_links(mut self) -> Self {
        self.symlinks = Symlinks::Reject;
        self
    }

    /// Runs every operation in this sandbox. An operation fails if the executor cannot enforce it.
    #[must_use]
    pub fn sandboxed(mut self, sandbox: SandboxParams) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Reads a regular file of up to 512 MiB.
    pub async fn read(&self, path: impl AsRef<Path>) -> Result<Bytes, FileError> {
        let path = path.as_ref();
        let is_large = self.metadata(path).await?.size > WHOLE_BYTES;
        if !is_large {
            let read = |backend: Backend, file| backend.read(file);
            return self.run("read", path, read).await;
        }
        if self.symlinks.are_followed() {
            return self.read_in_blocks(path).await;
        }
        let message = format!("file is larger than {WHOLE_BYTES} bytes");
        Err(invalid("read", path, message))
    }

    async fn read_in_blocks(&self, path: &Path) -> Result<Bytes, FileError> {
        let mut reader = self.open(path).await?;
        let mut content = Vec::new();
        loop {
            let bytes = reader.next_bytes().await?;
            if bytes.is_empty() {
                return Ok(content.into());
            }
            if content.len() + bytes.len() > MAX_READ_BYTES {
                let message = format!("file is larger than {MAX_READ_BYTES} bytes");
                return Err(invalid("read", path, message));
            }
            content.extend_from_slice(&bytes);
        }
    }

    /// Replaces the content of a file in place. Creates the file if it does not exist. At most
    /// 32 MiB: use [`create`](Self::create) for more, and for an atomic replacement.
    pub async fn write(
        &self,
        path: impl AsRef<Path>,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<(), FileError> {
        let (path, bytes) = (path.as_ref(), bytes.into());
        if bytes.len() as u64 > WHOLE_BYTES {
            let message = format!("content is larger than {WHOLE_BYTES} bytes; use create");
            return Err(invalid("write", path, message));
        }
        let write = |backend: Backend, file| backend.write(file, bytes);
        self.run("write", path, write).await
    }

    /// Opens a regular file of any size, to be read in blocks.
    pub async fn open(&self, path: impl AsRef<Path>) -> Result<FileReader, FileError> {
        let path = path.as_ref();
        let open = |backend: Backend, file| backend.open(file);
        let opened = self.run("read", path, open).await?;
        Ok(FileReader::new(path.to_owned(), opened))
    }

    /// Starts to replace a file, which need not exist, with content of any size. A server must
    /// announce `fsWriteStream`.
    pub async fn create(&self, path: impl AsRef<Path>) -> Result<FileWriter, FileError> {
        let path = path.as_ref();
        let create = |backend: Backend, file| backend.create(file);
        let writer = self.run("write", path, create).await?;
        Ok(FileWriter::new(path.to_owned(), writer))
    }

    /// Creates a directory. With `recursive`, missing parents are created too, and an existing
    /// directory is no error.
    pub async fn create_directory(
        &self,
        path: impl AsRef<Path>,
        recursive: bool,
    ) -> Result<(), FileError> {
        let symlinks = self.symlinks;
        self.perform("create directory", path.as_ref(), |path| {
            FileOp::CreateDirectory(FsCreateDirectoryParams {
                path,
                recursive,
                symlinks,
            })
        })
        .await
    }

    /// The metadata of the file that a path leads to.
    pub async fn metadata(&self, path: impl AsRef<Path>) -> Result<FileMetadata, FileError> {
        let symlinks = self.symlinks;
        self.perform("read metadata of", path.as_ref(), |path| {
            FileOp::GetMetadata(FsGetMetadataParams { path, symlinks })
        })
        .await
    }

    /// The path with all symbolic links resolved.
    pub async fn canonicalize(&self, path: impl AsRef<Path>) -> Result<PathBuf, FileError> {
        self.perform("resolve", path.as_ref(), |path| {
            FileOp::Canonicalize(FsCanonicalizeParams { path })
        })
        .await
    }

    /// The entries of a directory, sorted by name. A symbolic link is described by its target, and
    /// left out if it has none.
    pub async fn read_directory(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<Vec<DirectoryEntry>, FileError> {
        self.list(path.as_ref(), false).await
    }

    /// The entries of a directory, including symbolic links without a target. Servers that do not
    /// know this option leave them out.
    pub async fn read_directory_with_broken_links(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<Vec<DirectoryEntry>, FileError> {
        self.list(path.as_ref(), true).await
    }

    async fn list(
        &self,
        path: &Path,
        broken_links: bool,
    ) -> Result<Vec<DirectoryEntry>, FileError> {
        self.perform("list", path, |path| {
            FileOp::ReadDirectory(FsReadDirectoryParams { path, broken_links })
        })
        .await
    }

    /// Lists the tree below a directory, level by level.
    pub async fn walk(
        &self,
        path: impl AsRef<Path>,
        options: WalkOptions,
    ) -> Result<WalkResult, FileError> {
        self.perform("walk", path.as_ref(), |path| {
            FileOp::Walk(FsWalkParams { path, options })
        })
        .await
    }

    /// Removes a file, a symbolic link (not its target) or a directory.
    pub async fn remove(&self, path: impl AsRef<Path>, options: Remove) -> Result<(), FileError> {
        let symlinks = self.symlinks;
        self.perform("remove", path.as_ref(), |path| {
            FileOp::Remove(FsRemoveParams {
                path,
                recursive: options.recursive,
                force: options.force,
                symlinks,
            })
        })
        .await
    }

    /// Copies a file, a symbolic link, or with `recursive` a directory and its content, within the
    /// executor. Modes are kept and links stay links.
    pub async fn copy(
        &self,
        source: impl AsRef<Path>,
        destination: impl AsRef<Path>,
        recursive: bool,
    ) -> Result<(), FileError> {
        let source = source.as_ref();
        let destination = self.uri(destination.as_ref()).await;
        let destination_path =
            destination.map_err(|error| FileError::new("copy", source, error))?;
        self.perform("copy", source, |source_path| {
            FileOp::Copy(FsCopyParams {
                source_path,
                destination_path,
                recursive,
            })
        })
        .await
    }

    /// Watches a file, a directory, or a path that does not exist yet. Of a symbolic link, the target is
    /// watched and the link's path is reported. The watch survives that the path is replaced, removed
    /// and created again, and that the connection to the server is lost. A server must announce
    /// `fsWatch`. A watch cannot be sandboxed.
    ///
    /// # Errors
    /// When the path must not be read, or a limit of the executor or the kernel is reached.
    pub async fn watch(
        &self,
        path: impl AsRef<Path>,
        options: WatchOptions,
    ) -> Result<FileWatch, FileError> {
        let queue = Arc::new(WatchQueue::default());
        let mut absolute = PathBuf::new();
        let watch = |backend: Backend, file: FileTarget| {
            file.path.as_path().clone_into(&mut absolute);
            backend.watch(file, options, Arc::clone(&queue))
        };
        let source = self.run("watch", path.as_ref(), watch).await?;
        Ok(FileWatch::new(absolute, queue, source))
    }

    /// Performs an operation on a path. `verb` names it in an error.
    async fn perform<T>(
        &self,
        verb: &'static str,
        path: &Path,
        op: impl FnOnce(PathUri) -> FileOp,
    ) -> Result<T, FileError>
    where
        T: TryFrom<FileReply, Error = UnexpectedReply>,
    {
        let perform = |backend: Backend, file: FileTarget| {
            let op = op(file.path);
            let sandbox = file.sandbox;
            backend.perform(FileRequest { op, sandbox })
        };
        T::try_from(self.run(verb, path, perform).await?).map_err(|UnexpectedReply| {
            let error = BackendError::new(FileErrorKind::Failed, "unexpected reply");
            FileError::new(verb, path, error)
        })
    }

    /// Runs an operation of the back end on a path. `verb` names it in an error.
    async fn run<T>(
        &self,
        verb: &'static str,
        path: &Path,
        operation: impl FnOnce(Backend, FileTarget) -> FileFuture<T>,
    ) -> Result<T, FileError> {
        let run = async {
            let file = FileTarget {
                path: self.uri(path).await?,
                symlinks: self.symlinks,
                sandbox: self.sandbox.clone(),
            };
            operation(Arc::clone(&self.backend), file).await
        };
        run.await.map_err(|error| FileError::new(verb, path, error))
    }

    /// The absolute and lexically normalized path.
    async fn uri(&self, path: &Path) -> Result<PathUri, BackendError> {
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            let message = "path contains a NUL byte";
            return Err(BackendError::new(FileErrorKind::Invalid, message));
        }
        if path.is_absolute() {
            return Ok(PathUri::from_path(path));
        }
        let base = Arc::clone(&self.backend).base().await?;
        Ok(PathUri::from_path(&base.join(path)))
    }
}

fn invalid(verb: &'static str, path: &Path, message: String) -> FileError {
    let error = BackendError::new(FileErrorKind::Invalid, message);
    FileError::new(verb, path, error)
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("symlinks", &self.symlinks)
            .field("sandbox", &self.sandbox)
            .finish_non_exhaustive()
    }
}
