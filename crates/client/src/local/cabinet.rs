//! The files of this machine.

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use bytes::Bytes;
use outpost_engine::{Departure, Purpose};
use outpost_files::{Clerk, ErrorKind, FilesError, Links, OpenFile, Writer};
use outpost_protocol::{
    FsCanonicalizeParams, FsCanonicalizeResult, FsCopyParams, FsCreateDirectoryParams,
    FsCreateStreamParams, FsDirectoryEntry, FsEntryKind, FsGetMetadataParams, FsGetMetadataResult,
    FsPath, FsReadDirectoryParams, FsReadDirectoryResult, FsReadFileParams, FsReadFileResult,
    FsRemoveParams, FsWalkEntry, FsWalkError, FsWalkOptions, FsWalkParams, FsWalkResult,
    FsWriteFileParams, PathUri, SandboxParams,
};

use super::{place::Inner, refusal};
use crate::{
    Error,
    files::{Block, Cabinet, Draft, FileErrorKind, Opened, Source, Trouble, Working},
};

/// Does what is asked itself, where blocking is fine.
pub(crate) struct LocalCabinet {
    files: outpost_files::Files,
    /// Whose files they are; none if nobody's in particular.
    place: Option<Arc<Inner>>,
}

impl LocalCabinet {
    /// The files of this program.
    pub(crate) fn here() -> Self {
        LocalCabinet {
            files: outpost_files::Files::default(),
            place: None,
        }
    }

    /// Those of a place, which lasts as long as somebody has them.
    pub(super) fn of(place: Arc<Inner>) -> Self {
        LocalCabinet {
            place: Some(place),
            ..LocalCabinet::here()
        }
    }

    /// Does something that changes nothing, unless it is known beforehand that it can't be done.
    fn look<T: Send + 'static>(
        &self,
        sandbox: Option<SandboxParams>,
        work: impl FnOnce(Clerk) -> Result<T, Trouble> + Send + 'static,
    ) -> Working<T> {
        self.confined(sandbox, Purpose::Look, work)
    }

    /// The same for what changes something.
    fn work<T: Send + 'static>(
        &self,
        sandbox: Option<SandboxParams>,
        work: impl FnOnce(Clerk) -> Result<T, Trouble> + Send + 'static,
    ) -> Working<T> {
        self.confined(sandbox, Purpose::Change, work)
    }

    fn confined<T: Send + 'static>(
        &self,
        sandbox: Option<SandboxParams>,
        purpose: Purpose,
        work: impl FnOnce(Clerk) -> Result<T, Trouble> + Send + 'static,
    ) -> Working<T> {
        let files = self.files;
        let place = self.place.clone();
        let open = place.as_ref().map_or(Ok(()), |place| place.check_open());
        Box::pin(async move {
            open?;
            let (clerk, departure) = match place {
                Some(place) => place.clerk(sandbox.as_ref(), purpose, files).await?,
                // Nobody is there who could confine anything.
                None => {
                    sandbox.as_ref().map_or(Ok(()), refusal::check_sandbox)?;
                    (Clerk::here(files), Departure::default())
                }
            };
            let done = blocking(move || work(clerk)).await;
            // Who hears of it finds nothing left of it.
            departure.complete().await;
            done
        })
    }
}

/// Does something where blocking is fine.
fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Trouble> + Send + 'static,
) -> Working<T> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        let gone = |_| {
            Err(Trouble::unavailable(Error::disconnected(
                "the runtime ended",
            )))
        };
        done.unwrap_or_else(gone)
    })
}

impl Cabinet for LocalCabinet {
    fn base(&self) -> Working<PathBuf> {
        let base = match &self.place {
            Some(place) => Ok(place.cwd().to_owned()),
            None => std::env::current_dir().map_err(|error| FilesError::from(error).into()),
        };
        Box::pin(async { base })
    }

    fn read(&self, params: FsReadFileParams) -> Working<FsReadFileResult<Bytes>> {
        self.look(params.sandbox, move |files| {
            let bytes = files.read(&native(params.path)?, links(params.follow_symlinks))?;
            Ok(FsReadFileResult {
                data_base64: bytes.into(),
            })
        })
    }

    fn write(&self, params: FsWriteFileParams) -> Working<()> {
        self.work(params.sandbox, move |files| {
            let bytes = params
                .data_base64
                .0
                .map_err(|error| Trouble::new(FileErrorKind::Invalid, error.to_string()))?;
            let links = links(params.follow_symlinks);
            Ok(files.write(&native(params.path)?, &bytes, links)?)
        })
    }

    fn create_directory(&self, params: FsCreateDirectoryParams) -> Working<()> {
        self.work(params.sandbox, move |files| {
            let links = links(params.follow_symlinks);
            let path = native(params.path)?;
            Ok(files.create_directory(&path, params.recursive, links)?)
        })
    }

    fn metadata(&self, params: FsGetMetadataParams) -> Working<FsGetMetadataResult> {
        self.look(params.sandbox, move |files| {
            let links = links(params.follow_symlinks);
            Ok(described(files.metadata(&native(params.path)?, links)?))
        })
    }

    fn canonicalize(&self, params: FsCanonicalizeParams) -> Working<FsCanonicalizeResult> {
        self.look(params.sandbox, move |files| {
            let path = files.canonicalize(&native(params.path)?)?;
            Ok(FsCanonicalizeResult {
                path: PathUri::from_path(&path),
            })
        })
    }

    fn read_directory(&self, params: FsReadDirectoryParams) -> Working<FsReadDirectoryResult> {
        self.look(params.sandbox, move |files| {
            let mut entries = files.read_directory(&native(params.path)?)?;
            entries.retain(|entry| params.broken_links || !entry.is_broken_link);
            let entries = entries.into_iter().map(|entry| FsDirectoryEntry {
                file_name: entry.name.to_string_lossy().into_owned(),
                is_directory: entry.is_directory,
                is_file: entry.is_file,
                is_broken_link: entry.is_broken_link,
            });
            Ok(FsReadDirectoryResult {
                entries: entries.collect(),
            })
        })
    }

    fn walk(&self, params: FsWalkParams) -> Working<FsWalkResult> {
        self.look(params.sandbox, move |files| {
            let options = walk_options(params.options);
            Ok(walked(files.walk(&native(params.path)?, options)?))
        })
    }

    fn remove(&self, params: FsRemoveParams) -> Working<()> {
        self.work(params.sandbox, move |files| {
            let how = outpost_files::Remove {
                recursive: params.recursive,
                force: params.force,
                links: links(params.follow_symlinks),
            };
            Ok(files.remove(&native(params.path)?, how)?)
        })
    }

    fn copy(&self, params: FsCopyParams) -> Working<()> {
        self.work(params.sandbox, move |files| {
            let (from, to) = (
                native(params.source_path)?,
                native(params.destination_path)?,
            );
            Ok(files.copy(&from, &to, params.recursive)?)
        })
    }

    fn open(&self, path: PathUri, sandbox: Option<SandboxParams>) -> Working<Opened> {
        self.look(sandbox, move |files| {
            let metadata = described(files.metadata(path.as_path(), Links::Follow)?);
            let file = files.open(path.as_path(), Links::Follow)?;
            Ok(Opened {
                source: Arc::new(LocalFile(file)),
                metadata,
            })
        })
    }

    fn create(&self, params: FsCreateStreamParams) -> Working<Arc<dyn Draft>> {
        self.work(params.sandbox, move |files| {
            let writer = files.create_stream(&native(params.path)?)?;
            let draft = LocalDraft(RwLock::new(Some(writer)));
            Ok(Arc::new(draft) as Arc<dyn Draft>)
        })
    }
}

struct LocalFile(OpenFile);

impl Source for LocalFile {
    fn block(self: Arc<Self>, offset: u64, len: u64) -> Working<Block> {
        blocking(move || {
            let block = self.0.read_block(offset, len)?;
            Ok(Block {
                chunk: block.bytes.into(),
                eof: block.eof,
            })
        })
    }
}

/// Blocks are written at the same time; the commit has it to itself.
struct LocalDraft(RwLock<Option<Writer>>);

impl Draft for LocalDraft {
    fn write(self: Arc<Self>, offset: u64, bytes: Bytes) -> Working<()> {
        blocking(move || {
            let writer = self.0.read().unwrap_or_else(PoisonError::into_inner);
            match &*writer {
                Some(writer) => Ok(writer.write_block(offset, &bytes)?),
                None => Err(done()),
            }
        })
    }

    fn commit(self: Arc<Self>) -> Working<()> {
        blocking(move || {
            let writer = self
                .0
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            Ok(writer.ok_or_else(done)?.commit()?)
        })
    }
}

fn done() -> Trouble {
    Trouble::new(FileErrorKind::Invalid, "the file was replaced already")
}

fn links(follow: bool) -> Links {
    match follow {
        true => Links::Follow,
        false => Links::Refuse,
    }
}

fn native(path: FsPath) -> Result<PathBuf, Trouble> {
    path.into_path()
        .map_err(|error| Trouble::new(FileErrorKind::Invalid, error.to_string()))
}

fn described(metadata: outpost_files::Metadata) -> FsGetMetadataResult {
    FsGetMetadataResult {
        is_directory: metadata.is_directory,
        is_file: metadata.is_file,
        is_symlink: metadata.is_symlink,
        size: metadata.size,
        created_at_ms: metadata.created_at_ms.unwrap_or(0),
        modified_at_ms: metadata.modified_at_ms,
    }
}

fn walk_options(options: FsWalkOptions) -> outpost_files::WalkOptions {
    outpost_files::WalkOptions {
        max_depth: options.max_depth,
        max_directories: options.max_directories,
        max_entries: options.max_entries,
        follow_directory_symlinks: options.follow_directory_symlinks,
        prune_hidden_directories: options.prune_hidden_directories,
    }
}

fn walked(walk: outpost_files::Walk) -> FsWalkResult {
    let entries = walk.entries.into_iter().map(|entry| FsWalkEntry {
        path: PathUri::from_path(&entry.path),
        kind: match entry.kind {
            outpost_files::EntryKind::Directory => FsEntryKind::Directory,
            outpost_files::EntryKind::File => FsEntryKind::File,
        },
    });
    let errors = walk.errors.into_iter().map(|error| FsWalkError {
        path: PathUri::from_path(&error.path),
        message: error.message,
    });
    FsWalkResult {
        entries: entries.collect(),
        errors: errors.collect(),
        truncated: walk.truncated,
    }
}

impl From<FilesError> for Trouble {
    fn from(error: FilesError) -> Self {
        let kind = match error.kind() {
            ErrorKind::NotFound => FileErrorKind::NotFound,
            ErrorKind::Invalid => FileErrorKind::Invalid,
            ErrorKind::Failed => FileErrorKind::Failed,
        };
        Trouble::refused(kind, error.to_string())
    }
}
