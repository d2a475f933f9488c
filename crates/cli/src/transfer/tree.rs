//! What there is below a directory.

use std::path::PathBuf;

use anyhow::anyhow;
use outpost_client::{DirectoryEntry, FileErrorKind, Files};
use tokio::{sync::mpsc, task::JoinSet};

use super::copying::{Course, of_place};

/// How deep a tree may be: one that is copied into itself by way of two servers
/// would never end.
const DEEPEST: usize = 128;
/// How many files are looked at together.
const LOOKS_AT_ONCE: usize = 16;

/// A file to be brought over.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
}

/// Finds what is to be copied, and makes the directories for it.
pub(super) struct Search<'a> {
    pub(super) from: &'a Files,
    pub(super) to: &'a Files,
    /// Takes what was found, to those who copy. Bounded: who is far ahead waits.
    pub(super) jobs: &'a mpsc::Sender<Job>,
    pub(super) course: &'a Course<'a>,
}

struct Level {
    from: PathBuf,
    to: PathBuf,
    depth: usize,
}

impl Search<'_> {
    /// A directory, with everything below it. What can't be copied is reported;
    /// only the loss of a place is an error.
    pub(super) async fn tree(&self, from: PathBuf, to: PathBuf) -> anyhow::Result<()> {
        let depth = 0;
        let mut waiting = vec![Level { from, to, depth }];
        while let Some(level) = waiting.pop() {
            match self.level(&level).await {
                Ok(below) => waiting.extend(below),
                Err(error) => self.course.trouble(error)?,
            }
        }
        Ok(())
    }

    /// A file by itself.
    pub(super) async fn file(&self, from: PathBuf, to: PathBuf, size: u64) -> anyhow::Result<()> {
        self.course.tally.found(size);
        let given = self.jobs.send(Job { from, to }).await;
        given.map_err(|_| anyhow!("nobody copies any more"))
    }

    /// One directory; gives those that are in it.
    async fn level(&self, level: &Level) -> anyhow::Result<Vec<Level>> {
        if level.depth > DEEPEST {
            let path = &level.from;
            return Err(anyhow!("{path:?} is more than {DEEPEST} levels deep"));
        }
        let entries = self.from.read_directory(&level.from).await?;
        self.to.create_directory(&level.to, true).await?;
        let mut below = Vec::new();
        let mut looks = JoinSet::new();
        for entry in entries {
            let (from, to) = (
                level.from.join(&entry.file_name),
                level.to.join(&entry.file_name),
            );
            match self.entry(&entry, &from).await {
                Ok(true) => below.push(Level {
                    from,
                    to,
                    depth: level.depth + 1,
                }),
                Ok(false) if self.course.sizes => {
                    if looks.len() >= LOOKS_AT_ONCE {
                        self.looked(looks.join_next().await).await?;
                    }
                    let files = self.from.clone();
                    looks.spawn(async move {
                        // If it can't be looked at, whoever copies it says so.
                        let found = files.metadata(&from).await;
                        (Job { from, to }, found.map_or(0, |found| found.size))
                    });
                }
                Ok(false) => self.file(from, to, 0).await?,
                Err(error) => self.course.trouble(error)?,
            }
        }
        while let Some(look) = looks.join_next().await {
            self.looked(Some(look)).await?;
        }
        Ok(below)
    }

    async fn looked(
        &self,
        look: Option<Result<(Job, u64), tokio::task::JoinError>>,
    ) -> anyhow::Result<()> {
        match look {
            Some(Ok((job, size))) => self.file(job.from, job.to, size).await,
            _ => Ok(()),
        }
    }

    /// Whether something is a directory to go into.
    async fn entry(&self, entry: &DirectoryEntry, path: &PathBuf) -> anyhow::Result<bool> {
        // What isn't UTF-8 is listed in a form in which it can't be found again.
        if entry.file_name.contains(char::REPLACEMENT_CHARACTER)
            && let Err(error) = self.from.metadata(path).await
            && error.kind() == FileErrorKind::NotFound
        {
            return Err(anyhow!("{path:?} has a name that is not UTF-8"));
        }
        if entry.is_file {
            return Ok(false);
        }
        if !entry.is_directory {
            return Err(anyhow!("{path:?} is neither a file nor a directory"));
        }
        // A link could lead to where we came from.
        match self.from.metadata(path).await?.is_symlink {
            true => Err(anyhow!(
                "{path:?} is a link to a directory, and is not followed"
            )),
            false => Ok(true),
        }
    }
}

impl Course<'_> {
    /// Something was not copied, and the rest is: unless a place is out of reach,
    /// and all the rest with it.
    pub(super) fn trouble(&self, error: anyhow::Error) -> anyhow::Result<()> {
        let error = of_place(error)?;
        self.tally.failed();
        (self.complain)(&error);
        Ok(())
    }
}
