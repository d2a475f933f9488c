//! Copies files and directories between locations.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use outpost_client::{Error, FileError, FileErrorKind};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    CopyProgress, FileLocation, copy_file,
    destination::{Destination, Existing},
    tree::{FileCopy, TreeWalk},
};

/// Maximum number of concurrent copies; small files mostly wait for round trips.
const CONCURRENT_FILES: usize = 4;
/// Maximum number of files queued ahead of the copy, so that the total size is known early.
const MAX_QUEUED_FILES: usize = 65_536;

/// Options of a copy.
pub(crate) struct CopyOptions<'a> {
    /// Copy directories too.
    pub(crate) recursive: bool,
    /// Determine the size of each file in advance, for the progress bar.
    pub(crate) sizes: bool,
    pub(crate) progress: Arc<CopyProgress>,
    /// Receives the error for each file that isn't copied.
    pub(crate) on_error: &'a (dyn Fn(&anyhow::Error) + Sync),
}

/// Copies sources to a destination; none stands for stdin or stdout. A file that can't be copied is
/// reported and counted, and the others are still copied.
pub(crate) async fn copy(
    sources: &[Option<FileLocation>],
    destination: Option<&FileLocation>,
    options: &CopyOptions<'_>,
) -> anyhow::Result<()> {
    match (sources, destination) {
        ([Some(source)], None) => to_output(source, options).await,
        (_, None) => bail!("cannot copy to stdout: it takes exactly one file"),
        (sources, Some(destination)) => to_location(sources, destination, options).await,
    }
}

async fn to_output(source: &FileLocation, options: &CopyOptions<'_>) -> anyhow::Result<()> {
    let metadata = source.files.metadata(&source.path).await?;
    options.progress.file_found(metadata.size);
    options.progress.all_found();
    let mut stdout = tokio::io::stdout();
    let copied = copy_file::file_to_stdout(source, &mut stdout, &options.progress).await;
    copied.map_err(|error| file_error(error).unwrap_or_else(|error| error))
}

async fn to_location(
    sources: &[Option<FileLocation>],
    destination: &FileLocation,
    options: &CopyOptions<'_>,
) -> anyhow::Result<()> {
    let existing = existing(destination).await?;
    let mut names = Destination::new(&destination.path, existing, sources.len());
    for source in sources {
        let copying = async {
            if let Some(source) = source {
                return from_location(source, destination, &mut names, options).await;
            }
            let to = names.for_file(None)?;
            options.progress.file_found(0);
            copy_file::stdin_to_file((&destination.files, to.as_path()), &options.progress).await
        };
        copying.await.or_else(|error| options.report(error))?;
    }
    options.progress.all_found();
    Ok(())
}

/// Copies a file, or a directory with everything below it.
async fn from_location(
    source: &FileLocation,
    destination: &FileLocation,
    names: &mut Destination,
    options: &CopyOptions<'_>,
) -> anyhow::Result<()> {
    let metadata = source.files.metadata(&source.path).await?;
    let path = &source.path;
    if metadata.is_directory && !options.recursive {
        bail!("{path:?} is a directory; use -r to copy it");
    }
    let to = if metadata.is_directory {
        names.for_directory(path)?
    } else {
        names.for_file(Some(path))?
    };
    check_apart(source, destination, &to, metadata.is_directory).await?;
    let (jobs, found) = mpsc::channel(MAX_QUEUED_FILES);
    let walking = async {
        // Dropped at the end, which ends the copy tasks.
        let jobs = jobs;
        let walk = TreeWalk {
            from: &source.files,
            to: &destination.files,
            jobs: &jobs,
            options,
        };
        if metadata.is_directory {
            walk.tree(path.clone(), to).await
        } else {
            walk.file(path.clone(), to, metadata.size).await
        }
    };
    tokio::try_join!(walking, copy_files(source, destination, found, options))?;
    Ok(())
}

/// Copies the queued files, several at a time.
async fn copy_files(
    source: &FileLocation,
    destination: &FileLocation,
    mut found: mpsc::Receiver<FileCopy>,
    options: &CopyOptions<'_>,
) -> anyhow::Result<()> {
    // Dropping the set aborts the copies in flight.
    let mut in_flight = JoinSet::new();
    loop {
        tokio::select! {
            Some(FileCopy { from, to }) = found.recv(), if in_flight.len() < CONCURRENT_FILES => {
                let (source, destination) = (source.files.clone(), destination.files.clone());
                let progress = Arc::clone(&options.progress);
                in_flight.spawn(async move {
                    let (from, to) = ((&source, &*from), (&destination, &*to));
                    copy_file::file_to_file(from, to, &progress).await
                });
            }
            Some(copied) = in_flight.join_next() => {
                if let Err(error) = copied.context("a copy task failed")? {
                    options.report(error.into())?;
                }
            }
            else => return Ok(()),
        }
    }
}

async fn existing(destination: &FileLocation) -> anyhow::Result<Existing> {
    match destination.files.metadata(&destination.path).await {
        Ok(metadata) if metadata.is_directory => Ok(Existing::Directory),
        Ok(_) => Ok(Existing::File),
        Err(error) if error.kind() == FileErrorKind::NotFound => Ok(Existing::Nothing),
        Err(error) => Err(file_error(error.into())?),
    }
}

/// Rejects copying a file onto itself, and a directory into itself, which would never end. Two
/// names of the same server can't be recognized.
async fn check_apart(
    source: &FileLocation,
    destination: &FileLocation,
    to: &Path,
    directory: bool,
) -> anyhow::Result<()> {
    if source.server != destination.server {
        return Ok(());
    }
    let original = source.files.canonicalize(&source.path).await?;
    let Some(copy) = canonical(destination, to).await? else {
        return Ok(());
    };
    let path = &source.path;
    if directory && copy.starts_with(&original) {
        bail!("cannot copy the directory {path:?} into itself");
    }
    if copy == original {
        bail!("{path:?} and {to:?} are the same file");
    }
    Ok(())
}

/// The canonical path of a copy, which need not exist; none if its parent doesn't exist either.
async fn canonical(place: &FileLocation, path: &Path) -> Result<Option<PathBuf>, FileError> {
    let missing = |error: &FileError| error.kind() == FileErrorKind::NotFound;
    match place.files.canonicalize(path).await {
        Ok(path) => return Ok(Some(path)),
        Err(error) if missing(&error) => {}
        Err(error) => return Err(error),
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let is_here = parent.as_os_str().is_empty();
    let parent = if is_here { Path::new(".") } else { parent };
    match place.files.canonicalize(parent).await {
        Ok(parent) => Ok(Some(parent.join(name))),
        Err(error) if missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns an error that concerns one file, and fails with an error that concerns the executor.
pub(crate) fn file_error(error: anyhow::Error) -> anyhow::Result<anyhow::Error> {
    if error.is::<Error>() {
        return Err(error);
    }
    let Some(file_error) = error.downcast_ref::<FileError>() else {
        return Ok(error);
    };
    match file_error.executor_error() {
        // The executor is reachable; only this operation is unsupported.
        Some(Error::Unsupported { .. }) | None => Ok(error),
        Some(cause) => {
            let (operation, path) = (file_error.operation(), file_error.path());
            let cause = anyhow::Error::new(cause.clone());
            Err(cause.context(format!("cannot {operation} {path:?}")))
        }
    }
}
