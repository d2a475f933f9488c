//! What callers hold of a place's files.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use outpost_protocol::{
    Base64Text, FsCanonicalizeParams, FsCopyParams, FsCreateDirectoryParams, FsCreateStreamParams,
    FsDirectoryEntry, FsGetMetadataParams, FsGetMetadataResult, FsPath, FsReadDirectoryParams,
    FsReadFileParams, FsRemoveParams, FsWalkOptions, FsWalkParams, FsWalkResult, FsWriteFileParams,
    PathUri, SandboxParams,
};

use super::{Cabinet, FileError, FileErrorKind, FileReader, FileWriter, Trouble};

/// The most that goes over the wire in one message. Larger files are read in
/// blocks, and written as streams.
const WHOLE_BYTES: u64 = 32 * 1024 * 1024;

/// The files of a place. Clones name the same files; relative paths begin at the
/// working directory of the place.
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
    cabinet: Arc<dyn Cabinet>,
    follow_symlinks: bool,
    sandbox: Option<SandboxParams>,
}

/// How something is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remove {
    /// A directory with everything below it, instead of an empty one alone.
    pub recursive: bool,
    /// What isn't there counts as removed.
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
    pub(crate) fn new(cabinet: Arc<dyn Cabinet>) -> Self {
        Files {
            cabinet,
            follow_symlinks: true,
            sandbox: None,
        }
    }

    /// The files of the machine that this program runs on, without a place for
    /// processes. Its methods need a tokio runtime.
    #[must_use]
    pub fn here() -> Self {
        Files::new(Arc::new(crate::local::LocalCabinet::here()))
    }

    /// The same files, where a path with a symbolic link anywhere in it is
    /// refused by [`read`](Self::read), [`write`](Self::write),
    /// [`create_directory`](Self::create_directory),
    /// [`metadata`](Self::metadata) and [`remove`](Self::remove). The other
    /// operations follow links in any case.
    #[must_use]
    pub fn without_links(mut self) -> Self {
        self.follow_symlinks = false;
        self
    }

    /// The same files, where every operation is confined. What the place can't
    /// enforce it doesn't do.
    #[must_use]
    pub fn confined(mut self, sandbox: SandboxParams) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// All bytes of a regular file, of up to 512 MiB.
    pub async fn read(&self, path: impl AsRef<Path>) -> Result<Bytes, FileError> {
        let path = path.as_ref();
        let known = self.metadata(path).await?;
        if known.size > WHOLE_BYTES && self.follow_symlinks {
            return self.read_in_blocks(path).await;
        }
        let read = async {
            if known.size > WHOLE_BYTES {
                let words = format!("file is larger than {WHOLE_BYTES} bytes");
                return Err(Trouble::new(FileErrorKind::Invalid, words));
            }
            let params = FsReadFileParams {
                path: self.fs_path(path).await?,
                follow_symlinks: self.follow_symlinks,
                sandbox: self.sandbox.clone(),
            };
            Ok(self.cabinet.read(params).await?.data_base64)
        };
        read.await.map_err(named("read", path))
    }

    async fn read_in_blocks(&self, path: &Path) -> Result<Bytes, FileError> {
        const MOST: usize = 512 * 1024 * 1024;
        let mut reader = self.open(path).await?;
        let mut all = Vec::new();
        loop {
            let bytes = reader.next_bytes().await?;
            if bytes.is_empty() {
                return Ok(all.into());
            }
            if all.len() + bytes.len() > MOST {
                let words = format!("file is larger than {MOST} bytes");
                let trouble = Trouble::new(FileErrorKind::Invalid, words);
                return Err(FileError::new("read", path, trouble));
            }
            all.extend_from_slice(&bytes);
        }
    }

    /// Makes `bytes` all that is in a file, which is made if there is none and
    /// stays the file it is otherwise. At most 32 MiB: for more, and for all or
    /// nothing, there is [`create`](Self::create).
    pub async fn write(
        &self,
        path: impl AsRef<Path>,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<(), FileError> {
        let (path, bytes) = (path.as_ref(), bytes.into());
        let write = async {
            if bytes.len() as u64 > WHOLE_BYTES {
                let words = format!("more than {WHOLE_BYTES} bytes are written as a stream");
                return Err(Trouble::new(FileErrorKind::Invalid, words));
            }
            let params = FsWriteFileParams {
                path: self.fs_path(path).await?,
                data_base64: Base64Text::from(bytes),
                follow_symlinks: self.follow_symlinks,
                sandbox: self.sandbox.clone(),
            };
            self.cabinet.write(params).await
        };
        write.await.map_err(named("write", path))
    }

    /// Opens a regular file of any size, to be read in blocks.
    pub async fn open(&self, path: impl AsRef<Path>) -> Result<FileReader, FileError> {
        let path = path.as_ref();
        let open = async {
            let uri = self.uri(path).await?;
            self.cabinet.open(uri, self.sandbox.clone()).await
        };
        let opened = open.await.map_err(named("read", path))?;
        Ok(FileReader::new(path.to_owned(), opened))
    }

    /// Begins to replace a file, which needn't exist, with one of any size.
    /// Beyond the released servers: `fsWriteStream`.
    pub async fn create(&self, path: impl AsRef<Path>) -> Result<FileWriter, FileError> {
        let path = path.as_ref();
        let create = async {
            let params = FsCreateStreamParams {
                handle_id: String::new(),
                path: self.fs_path(path).await?,
                sandbox: self.sandbox.clone(),
            };
            self.cabinet.create(params).await
        };
        let draft = create.await.map_err(named("write", path))?;
        Ok(FileWriter::new(path.to_owned(), draft))
    }

    /// Makes a directory; if `recursive`, with every one above it that is missing,
    /// and without an error if it is there already.
    pub async fn create_directory(
        &self,
        path: impl AsRef<Path>,
        recursive: bool,
    ) -> Result<(), FileError> {
        let path = path.as_ref();
        let create = async {
            let params = FsCreateDirectoryParams {
                path: self.fs_path(path).await?,
                recursive,
                follow_symlinks: self.follow_symlinks,
                sandbox: self.sandbox.clone(),
            };
            self.cabinet.create_directory(params).await
        };
        create.await.map_err(named("create directory", path))
    }

    /// What a path leads to. Of a link that is what it leads to, and that it is one.
    pub async fn metadata(&self, path: impl AsRef<Path>) -> Result<FsGetMetadataResult, FileError> {
        let path = path.as_ref();
        let look = async {
            let params = FsGetMetadataParams {
                path: self.fs_path(path).await?,
                follow_symlinks: self.follow_symlinks,
                sandbox: self.sandbox.clone(),
            };
            self.cabinet.metadata(params).await
        };
        look.await.map_err(named("look at", path))
    }

    /// The same place without any link in its path.
    pub async fn canonicalize(&self, path: impl AsRef<Path>) -> Result<PathBuf, FileError> {
        let path = path.as_ref();
        let find = async {
            let params = FsCanonicalizeParams {
                path: self.fs_path(path).await?,
                sandbox: self.sandbox.clone(),
            };
            Ok(self.cabinet.canonicalize(params).await?.path.into_path())
        };
        find.await.map_err(named("find", path))
    }

    /// What is in a directory, by name. Links count as what they lead to, and
    /// those that lead nowhere are left out.
    pub async fn read_directory(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<Vec<FsDirectoryEntry>, FileError> {
        self.list(path.as_ref(), false).await
    }

    /// The same with links that lead nowhere. Servers that know no such wish, as the
    /// released ones, leave them out all the same.
    pub async fn read_directory_with_broken_links(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<Vec<FsDirectoryEntry>, FileError> {
        self.list(path.as_ref(), true).await
    }

    async fn list(
        &self,
        path: &Path,
        broken_links: bool,
    ) -> Result<Vec<FsDirectoryEntry>, FileError> {
        let list = async {
            let params = FsReadDirectoryParams {
                path: self.fs_path(path).await?,
                broken_links,
                sandbox: self.sandbox.clone(),
            };
            Ok(self.cabinet.read_directory(params).await?.entries)
        };
        list.await.map_err(named("list", path))
    }

    /// What is below a directory, level by level.
    pub async fn walk(
        &self,
        path: impl AsRef<Path>,
        options: FsWalkOptions,
    ) -> Result<FsWalkResult, FileError> {
        let path = path.as_ref();
        let walk = async {
            let params = FsWalkParams {
                path: self.fs_path(path).await?,
                options,
                sandbox: self.sandbox.clone(),
            };
            self.cabinet.walk(params).await
        };
        walk.await.map_err(named("walk", path))
    }

    /// Removes a file, a link or a directory. Of a link it is the link, never
    /// what that leads to.
    pub async fn remove(&self, path: impl AsRef<Path>, how: Remove) -> Result<(), FileError> {
        let path = path.as_ref();
        let remove = async {
            let params = FsRemoveParams {
                path: self.fs_path(path).await?,
                recursive: how.recursive,
                force: how.force,
                follow_symlinks: self.follow_symlinks,
                sandbox: self.sandbox.clone(),
            };
            self.cabinet.remove(params).await
        };
        remove.await.map_err(named("remove", path))
    }

    /// Copies a file, a link, or a directory with everything below it if
    /// `recursive`, within the place. Modes are kept and links stay links.
    pub async fn copy(
        &self,
        source: impl AsRef<Path>,
        destination: impl AsRef<Path>,
        recursive: bool,
    ) -> Result<(), FileError> {
        let source = source.as_ref();
        let copy = async {
            let params = FsCopyParams {
                source_path: self.fs_path(source).await?,
                destination_path: self.fs_path(destination.as_ref()).await?,
                recursive,
                sandbox: self.sandbox.clone(),
            };
            self.cabinet.copy(params).await
        };
        copy.await.map_err(named("copy", source))
    }

    async fn fs_path(&self, path: &Path) -> Result<FsPath, Trouble> {
        Ok(self.uri(path).await?.into())
    }

    async fn uri(&self, path: &Path) -> Result<PathUri, Trouble> {
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            let words = "path contains a NUL byte";
            return Err(Trouble::new(FileErrorKind::Invalid, words));
        }
        if path.is_absolute() {
            return Ok(PathUri::from_path(path));
        }
        let base = self.cabinet.base().await?;
        Ok(PathUri::from_path(&base.join(path)))
    }
}

/// The trouble with a path becomes an error that names it.
fn named(attempt: &'static str, path: &Path) -> impl FnOnce(Trouble) -> FileError {
    move |trouble| FileError::new(attempt, path, trouble)
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("follow_symlinks", &self.follow_symlinks)
            .field("sandbox", &self.sandbox)
            .finish_non_exhaustive()
    }
}
