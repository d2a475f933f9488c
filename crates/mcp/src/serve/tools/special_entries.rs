//! Links and special files, which `fs/walk` doesn't list.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use outpost_client::{FileError, FileErrorKind, Files};
use schemars::JsonSchema;
use serde::Serialize;

/// Concurrent inspections per directory. Several directories may be read concurrently.
const INSPECTIONS: usize = 4;

// Doc comments on these types become part of the tool's schema, so only unclear variants have one.
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

impl From<outpost_client::EntryKind> for EntryKind {
    fn from(kind: outpost_client::EntryKind) -> Self {
        match kind {
            outpost_client::EntryKind::Directory => EntryKind::Directory,
            outpost_client::EntryKind::File => EntryKind::File,
        }
    }
}

/// Returns the entries of a directory that are not in `listed`, by name, with their types after
/// following links. Servers that don't announce `brokenLinks` don't report broken links.
pub(super) async fn unlisted_entries(
    files: &Files,
    directory: &Path,
    listed: &HashSet<PathBuf>,
) -> Result<Vec<(PathBuf, LinkTarget)>, FileError> {
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
            unlisted.push((path, target));
        }
    }
    unlisted.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(unlisted)
}

/// Determines the type of an unlisted entry itself, and the target of a link if it is
/// accessible. Returns `None` if the entry no longer exists. Fails only if the executor is lost.
pub(super) async fn inspect(
    files: &Files,
    path: &Path,
    target: LinkTarget,
) -> Result<Option<(EntryKind, Option<LinkTarget>)>, FileError> {
    if target == LinkTarget::Nothing {
        // Only broken links have no target, and their metadata can't be read.
        return Ok(Some((EntryKind::Link, Some(target))));
    }
    Ok(Some(match files.metadata(path).await {
        Ok(metadata) if metadata.is_symlink => (EntryKind::Link, Some(target)),
        Err(error) if error.kind() == FileErrorKind::NotFound => return Ok(None),
        Err(error) if error.executor_error().is_some() => return Err(error),
        // The target is not accessible.
        Err(_) => (EntryKind::Link, None),
        // Files and directories here were created after the walk.
        Ok(_) => match target {
            LinkTarget::Directory => (EntryKind::Directory, None),
            LinkTarget::File => (EntryKind::File, None),
            LinkTarget::Other | LinkTarget::Nothing => (EntryKind::Other, None),
        },
    }))
}

/// Returns the paths of the links in a directory that are not in `listed`, by name.
pub(super) async fn unlisted_links(
    files: &Files,
    directory: &Path,
    listed: &HashSet<PathBuf>,
) -> Result<Vec<PathBuf>, FileError> {
    let unlisted = unlisted_entries(files, directory, listed).await?;
    let inspected = stream::iter(unlisted).map(|(path, target)| async move {
        let found = inspect(files, &path, target).await?;
        let is_link = matches!(found, Some((EntryKind::Link, _)));
        Ok(is_link.then_some(path))
    });
    let links = inspected.buffered(INSPECTIONS);
    links
        .try_filter_map(async |link| Ok(link))
        .try_collect()
        .await
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
            (file.clone(), Some((EntryKind::File, None))),
            (folder.path().join("gone"), None),
            (file.join("below"), Some((EntryKind::Link, None))),
        ] {
            let inspected = inspect(&files, &path, LinkTarget::File).await;
            assert_eq!(inspected.unwrap(), entry_type, "{path:?}");
        }
        executor.close().await.unwrap();
    }
}
