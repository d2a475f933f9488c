//! Scans a directory tree, including entries that `fs/walk` doesn't list.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use outpost_client::{FileError, FileErrorKind, Files, Walk, WalkOptions};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use super::concurrent::concurrent;

/// Limits that the executor imposes on a walk.
const WALK_DIRECTORIES: u64 = 10_000;
const WALK_ENTRIES: u64 = 50_000;
/// Concurrent inspections per directory. Several directories may be scanned concurrently.
const INSPECTIONS: usize = 4;

// No doc comments on these types: they would become part of the tool's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EntryKind {
    Directory,
    File,
    /// A symbolic link.
    Link,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum LinkTarget {
    Directory,
    File,
    Other,
    /// The target doesn't exist.
    Nothing,
}

/// The type of an entry, without following links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryType {
    pub(super) kind: EntryKind,
    /// The target of a link, if it is accessible.
    pub(super) target: Option<LinkTarget>,
}

impl EntryType {
    const fn plain(kind: EntryKind) -> Self {
        EntryType { kind, target: None }
    }

    pub(super) const fn link(target: Option<LinkTarget>) -> Self {
        EntryType {
            kind: EntryKind::Link,
            target,
        }
    }
}

/// An entry that a walk doesn't list: a link, or neither a file nor a directory.
#[derive(Clone, Debug)]
pub(super) struct UnlistedEntry {
    pub(super) path: PathBuf,
    /// The type after following links.
    target: LinkTarget,
}

impl UnlistedEntry {
    /// Determines the type of the entry itself. Returns `None` if it no longer exists.
    /// Fails only if the executor is lost.
    pub(super) async fn inspect(&self, files: &Files) -> Result<Option<EntryType>, FileError> {
        if self.target == LinkTarget::Nothing {
            // Only broken links have no target, and their metadata can't be read.
            return Ok(Some(EntryType::link(Some(LinkTarget::Nothing))));
        }
        Ok(Some(match files.metadata(&self.path).await {
            Ok(metadata) if metadata.is_symlink => EntryType::link(Some(self.target)),
            Err(error) if error.kind() == FileErrorKind::NotFound => return Ok(None),
            Err(error) if error.executor_error().is_some() => return Err(error),
            // The target is not accessible.
            Err(_) => EntryType::link(None),
            // Files and directories here were created after the walk.
            Ok(_) => EntryType::plain(match self.target {
                LinkTarget::Directory => EntryKind::Directory,
                LinkTarget::File => EntryKind::File,
                LinkTarget::Other | LinkTarget::Nothing => EntryKind::Other,
            }),
        }))
    }
}

/// Returns the entries of a directory that are not in `listed`, by name. Servers that don't
/// announce `brokenLinks` don't report broken links.
async fn unlisted_entries(
    files: &Files,
    directory: &Path,
    listed: &HashSet<PathBuf>,
) -> Result<Vec<UnlistedEntry>, FileError> {
    let mut unlisted = Vec::new();
    for entry in files.read_directory_with_broken_links(directory).await? {
        let path = directory.join(&entry.file_name);
        if !listed.contains(&path) {
            let target = match entry {
                _ if entry.is_directory => LinkTarget::Directory,
                _ if entry.is_file => LinkTarget::File,
                _ if entry.is_broken_link => LinkTarget::Nothing,
                _ => LinkTarget::Other,
            };
            unlisted.push(UnlistedEntry { path, target });
        }
    }
    unlisted.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(unlisted)
}

/// Returns the paths of the links in a directory that are not in `listed`, by name.
pub(super) async fn unlisted_links(
    files: &Files,
    directory: &Path,
    listed: &HashSet<PathBuf>,
) -> Result<Vec<PathBuf>, FileError> {
    let unlisted = unlisted_entries(files, directory, listed).await?;
    let inspected = concurrent(unlisted, INSPECTIONS, |entry| {
        let files = files.clone();
        async move {
            let entry_type = entry.inspect(&files).await?;
            let is_link = entry_type.is_some_and(|found| found.kind == EntryKind::Link);
            Ok(is_link.then_some(entry.path))
        }
    });
    let inspected = inspected.await.into_iter();
    inspected.filter_map(Result::transpose).collect()
}

/// A scan of a directory tree.
pub(super) struct DirectoryScan<'a> {
    pub(super) files: &'a Files,
    /// A directory, not a link to one.
    pub(super) root: &'a Path,
    pub(super) depth: u64,
    /// Whether to descend into hidden directories.
    pub(super) hidden: bool,
    pub(super) concurrency: usize,
    pub(super) deadline: Instant,
}

/// The entries of a directory tree, by depth and name.
pub(super) struct ScanResult {
    pub(super) entries: Vec<ScannedEntry>,
    /// Whether the scan hit a limit or its deadline.
    pub(super) incomplete: bool,
    /// Number of directories that could not be read.
    pub(super) unreadable: u64,
}

pub(super) struct ScannedEntry {
    /// The path relative to the root.
    pub(super) name: String,
    pub(super) detail: EntryDetail,
}

pub(super) enum EntryDetail {
    Known(EntryType),
    /// Inspected only if the entry is part of the response.
    Unlisted(UnlistedEntry),
}

impl DirectoryScan<'_> {
    /// Scans the tree: a walk lists files and directories, and reading each directory adds
    /// the other entries.
    pub(super) async fn run(&self) -> Result<ScanResult, FileError> {
        let options = WalkOptions {
            max_depth: self.depth - 1,
            max_directories: WALK_DIRECTORIES,
            max_entries: WALK_ENTRIES,
            follow_directory_symlinks: false,
            prune_hidden_directories: !self.hidden,
        };
        let walk = self.files.walk(self.root, options).await?;
        let directories = self.walked_directories(&walk);
        let mut result = ScanResult {
            entries: Vec::new(),
            incomplete: walk.truncated,
            unreadable: walk.errors.len() as u64,
        };
        let mut listed = HashSet::new();
        for entry in walk.entries {
            let path = entry.path;
            let kind = match entry.kind {
                outpost_client::EntryKind::Directory => EntryKind::Directory,
                outpost_client::EntryKind::File => EntryKind::File,
            };
            result.entries.push(ScannedEntry {
                name: self.name(&path),
                detail: EntryDetail::Known(EntryType::plain(kind)),
            });
            listed.insert(path);
        }
        // After a truncated walk, files are indistinguishable from unlisted entries.
        if !result.incomplete {
            let adding = self.add_unlisted(&mut result, &directories, Arc::new(listed));
            match timeout_at(self.deadline, adding).await {
                Ok(added) => added?,
                Err(_) => result.incomplete = true,
            }
        }
        result
            .entries
            .sort_by_cached_key(|entry| (depth(&entry.name), PathBuf::from(&entry.name)));
        Ok(result)
    }

    async fn add_unlisted(
        &self,
        result: &mut ScanResult,
        directories: &[PathBuf],
        listed: Arc<HashSet<PathBuf>>,
    ) -> Result<(), FileError> {
        for batch in directories.chunks(self.concurrency) {
            let timed_out = Instant::now() >= self.deadline;
            if timed_out || result.entries.len() as u64 >= WALK_ENTRIES {
                result.incomplete = true;
                return Ok(());
            }
            let found = concurrent(batch.iter().cloned(), self.concurrency, |directory| {
                let (files, listed) = (self.files.clone(), Arc::clone(&listed));
                async move { unlisted_entries(&files, &directory, &listed).await }
            });
            for unlisted in found.await {
                match unlisted {
                    Ok(unlisted) => {
                        result
                            .entries
                            .extend(unlisted.into_iter().map(|entry| ScannedEntry {
                                name: self.name(&entry.path),
                                detail: EntryDetail::Unlisted(entry),
                            }));
                    }
                    Err(error) if error.executor_error().is_some() => return Err(error),
                    Err(_) => result.unreadable += 1,
                }
            }
        }
        Ok(())
    }

    /// Returns the directories that a walk has read.
    fn walked_directories(&self, walk: &Walk) -> Vec<PathBuf> {
        let unreadable: HashSet<PathBuf> =
            walk.errors.iter().map(|error| error.path.clone()).collect();
        let below = walk
            .entries
            .iter()
            .filter(|entry| entry.kind == outpost_client::EntryKind::Directory)
            .map(|entry| entry.path.clone())
            .filter(|path| depth(&self.name(path)) < self.depth)
            .filter(|path| self.hidden || !is_hidden(path));
        [self.root.to_owned()]
            .into_iter()
            .chain(below)
            .filter(|path| !unreadable.contains(path))
            .collect()
    }

    fn name(&self, path: &Path) -> String {
        let name = path.strip_prefix(self.root).unwrap_or(path);
        name.display().to_string()
    }
}

/// Returns the depth of an entry below the root.
fn depth(name: &str) -> u64 {
    Path::new(name).components().count() as u64
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

#[cfg(test)]
mod tests {
    use outpost_client::{Executor as _, LocalExecutor, LocalOptions};

    use super::*;

    #[tokio::test]
    async fn inaccessible_entry_is_a_link_with_unknown_target() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let executor = LocalExecutor::new(LocalOptions::default()).unwrap();
        let files = executor.files();
        for (path, entry_type) in [
            (file.clone(), Some(EntryType::plain(EntryKind::File))),
            (folder.path().join("gone"), None),
            (file.join("below"), Some(EntryType::link(None))),
        ] {
            let target = LinkTarget::File;
            let entry = UnlistedEntry { path, target };
            assert_eq!(
                entry.inspect(&files).await.unwrap(),
                entry_type,
                "{entry:?}"
            );
        }
        executor.close().await.unwrap();
    }
}
