//! Walks a directory tree for a copy.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use outpost_client::{DirectoryEntry, FileErrorKind, Files};
use tokio::{sync::mpsc, task::JoinSet};

use super::copy::{CopyOptions, file_error};

/// Maximum depth. A tree copied into itself by way of two servers would never end.
const MAX_DEPTH: usize = 128;
/// Maximum number of concurrent metadata requests.
const CONCURRENT_LOOKUPS: usize = 16;

/// A file to copy.
#[derive(Debug)]
pub(super) struct FileCopy {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
}

/// Finds files to copy, and creates their directories.
pub(super) struct TreeWalk<'a> {
    pub(super) from: &'a Files,
    pub(super) to: &'a Files,
    /// Queue of files to copy. Bounded: the walk waits if it is far ahead.
    pub(super) jobs: &'a mpsc::Sender<FileCopy>,
    pub(super) options: &'a CopyOptions<'a>,
}

/// A directory that is still to be walked.
struct PendingDirectory {
    from: PathBuf,
    to: PathBuf,
    depth: usize,
}

impl TreeWalk<'_> {
    /// Walks a directory with everything below it. Errors about files are reported; only a lost
    /// executor is an error.
    pub(super) async fn tree(&self, from: PathBuf, to: PathBuf) -> anyhow::Result<()> {
        let depth = 0;
        let mut waiting = vec![PendingDirectory { from, to, depth }];
        while let Some(level) = waiting.pop() {
            match self.level(&level).await {
                Ok(below) => waiting.extend(below),
                Err(error) => self.options.report(error)?,
            }
        }
        Ok(())
    }

    /// Queues a file.
    pub(super) async fn file(&self, from: PathBuf, to: PathBuf, size: u64) -> anyhow::Result<()> {
        self.options.progress.file_found(size);
        let assigned = self.jobs.send(FileCopy { from, to }).await;
        assigned.map_err(|_| anyhow!("the copy has ended"))
    }

    /// Walks one directory, and returns its subdirectories.
    async fn level(&self, level: &PendingDirectory) -> anyhow::Result<Vec<PendingDirectory>> {
        if level.depth > MAX_DEPTH {
            bail!("{:?} is more than {MAX_DEPTH} levels deep", level.from);
        }
        let entries = self.from.read_directory(&level.from).await?;
        self.to.create_directory(&level.to, true).await?;
        let mut below = Vec::new();
        let mut lookups = JoinSet::new();
        for entry in entries {
            let [from, to] = [&level.from, &level.to].map(|path| path.join(&entry.file_name));
            match self.entry(&entry, &from).await {
                Ok(true) => below.push(PendingDirectory {
                    from,
                    to,
                    depth: level.depth + 1,
                }),
                Ok(false) if self.options.sizes => {
                    if lookups.len() >= CONCURRENT_LOOKUPS {
                        self.queue_measured(&mut lookups).await?;
                    }
                    let files = self.from.clone();
                    lookups.spawn(async move {
                        // The copy reports the error.
                        let found = files.metadata(&from).await;
                        (FileCopy { from, to }, found.map_or(0, |found| found.size))
                    });
                }
                Ok(false) => self.file(from, to, 0).await?,
                Err(error) => self.options.report(error)?,
            }
        }
        while !lookups.is_empty() {
            self.queue_measured(&mut lookups).await?;
        }
        Ok(below)
    }

    /// Queues the next file whose size is known.
    async fn queue_measured(&self, lookups: &mut JoinSet<(FileCopy, u64)>) -> anyhow::Result<()> {
        match lookups.join_next().await {
            Some(Ok((job, size))) => self.file(job.from, job.to, size).await,
            _ => Ok(()),
        }
    }

    /// Returns whether an entry is a directory to walk.
    async fn entry(&self, entry: &DirectoryEntry, path: &PathBuf) -> anyhow::Result<bool> {
        // A name that isn't UTF-8 is listed with replacement characters and can't be opened.
        if entry.file_name.contains(char::REPLACEMENT_CHARACTER)
            && let Err(error) = self.from.metadata(path).await
            && error.kind() == FileErrorKind::NotFound
        {
            bail!("{path:?} has a name that is not UTF-8");
        }
        if entry.is_file {
            return Ok(false);
        }
        if !entry.is_directory {
            bail!("{path:?} is neither a file nor a directory");
        }
        // A link to an ancestor would form a cycle.
        if self.from.metadata(path).await?.is_symlink {
            bail!("{path:?} is a link to a directory, which is not followed");
        }
        Ok(true)
    }
}

impl CopyOptions<'_> {
    /// Reports a file that was not copied. Fails if the executor is unreachable.
    pub(super) fn report(&self, error: anyhow::Error) -> anyhow::Result<()> {
        let error = file_error(error)?;
        self.progress.file_failed();
        (self.on_error)(&error);
        Ok(())
    }
}
