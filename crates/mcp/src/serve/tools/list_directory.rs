//! The tool `list_directory`.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
};

use futures_util::{StreamExt as _, stream};
use outpost_client::{FileError, Files, WalkOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::{
    in_range,
    special_entries::{self, EntryKind, LinkTarget},
};
use crate::serve::{CallContext, Tool, ToolError, text};

const MAX_DEPTH: u64 = 20;
/// Limits that the executor imposes on a walk.
const WALK_DIRECTORIES: u64 = 10_000;
const WALK_ENTRIES: u64 = 50_000;

/// Lists the entries of a directory, and of its subdirectories if depth is greater than 1.
/// Symbolic links are listed but not followed. To find files by name or content, use
/// search_files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDirectory {
    /// The directory, absolute or relative to the default working directory, which is listed if
    /// this is not given.
    path: Option<String>,
    /// The number of levels to list: 1 lists only the direct entries.
    #[schemars(range(min = 1, max = 20), extend("default" = 1))]
    depth: Option<u64>,
    /// Descend into hidden directories as well, if depth is greater than 1.
    include_hidden: Option<bool>,
    /// Return the size of each file, which takes a little longer.
    sizes: Option<bool>,
    /// The maximum number of entries in the response.
    #[schemars(range(min = 1, max = 5000), extend("default" = 300))]
    max_entries: Option<u64>,
    /// The number of entries to skip, to continue after a truncated response.
    #[schemars(range(min = 0), extend("default" = 0))]
    skip_entries: Option<u64>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Listing {
    path: String,
    /// The entries, by depth and name.
    entries: Vec<Entry>,
    /// The total number of entries found.
    total_entries: u64,
    /// The skip_entries to continue with, if there are more entries.
    next_skip: Option<u64>,
    /// Whether there were too many entries to list all of them, or the listing timed out.
    incomplete: bool,
    /// The number of directories that could not be read.
    unreadable: u64,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    /// The path relative to the listed directory.
    name: String,
    kind: EntryKind,
    /// The type of a link's target; null if it is not accessible. Links are not followed.
    leads_to: Option<LinkTarget>,
    /// The size, if requested.
    size_bytes: Option<u64>,
    // The type after following links of an entry that the walk didn't list. Its own type is
    // determined only if it is part of the response.
    #[serde(skip)]
    unlisted: Option<LinkTarget>,
}

impl Tool for ListDirectory {
    type Output = Listing;

    async fn call(self, context: &CallContext<'_>) -> Result<Listing, ToolError> {
        let limits = context.server.limits();
        let depth = in_range("depth", self.depth, 1, 1..=MAX_DEPTH)?;
        let range = 1..=limits.entries_max;
        let max_entries = in_range("max_entries", self.max_entries, limits.entries, range)?;
        let (files, path) = context.server.locate(self.path.as_deref()).await?;
        let deadline = Instant::now() + limits.search_timeout;
        let work = async {
            let metadata = files.metadata(&path).await?;
            if !metadata.is_directory {
                return Err(ToolError::NotDirectory { path: path.clone() });
            }
            // A walk doesn't follow links, but a link given as the path stands for its target.
            let root = if metadata.is_symlink {
                files.canonicalize(&path).await?
            } else {
                path.clone()
            };
            let scan = DirectoryScan {
                files: &files,
                root,
                depth,
                hidden: self.include_hidden.unwrap_or(false),
                concurrency: limits.concurrency,
                deadline,
            };
            let mut listing = scan.run().await?;
            listing.path = path.display().to_string();
            let skip = usize::try_from(self.skip_entries.unwrap_or(0)).unwrap_or(usize::MAX);
            listing.keep_page(skip, max_entries, limits.listed_bytes);
            scan.inspect_all(&mut listing, self.sizes.unwrap_or(false))
                .await?;
            Ok(listing)
        };
        context.run_file_operation("listing", work).await
    }
}

impl Listing {
    /// Removes the entries that are not part of the response.
    fn keep_page(&mut self, skip: usize, max_entries: usize, max_bytes: usize) {
        let total = self.entries.len();
        let skip = skip.min(total);
        self.entries.drain(..skip);
        self.entries.truncate(max_entries);
        // Each name may be a long path, so their total size is bounded.
        let mut bytes = 0;
        let fitting = self.entries.iter().take_while(|entry| {
            let fits = bytes < max_bytes;
            bytes += entry.name.len();
            fits
        });
        let end = skip + fitting.count();
        self.entries.truncate(end - skip);
        self.total_entries = total as u64;
        self.next_skip = (end < total).then_some(end as u64);
    }
}

/// A scan of a directory tree, including entries that `fs/walk` doesn't list.
struct DirectoryScan<'a> {
    files: &'a Files,
    /// A directory, not a link to one.
    root: PathBuf,
    depth: u64,
    /// Whether to descend into hidden directories.
    hidden: bool,
    concurrency: usize,
    deadline: Instant,
}

impl DirectoryScan<'_> {
    /// Scans the tree: a walk lists files and directories, and reading each directory adds
    /// the other entries.
    async fn run(&self) -> Result<Listing, FileError> {
        let options = WalkOptions {
            max_depth: self.depth - 1,
            max_directories: WALK_DIRECTORIES,
            max_entries: WALK_ENTRIES,
            follow_directory_symlinks: false,
            prune_hidden_directories: !self.hidden,
        };
        let walk = self.files.walk(&self.root, options).await?;
        let mut listing = Listing {
            incomplete: walk.truncated,
            unreadable: walk.errors.len() as u64,
            ..Listing::default()
        };
        let mut listed = HashSet::new();
        let mut directories = vec![self.root.clone()];
        for entry in walk.entries {
            let listed_entry = self.entry(&entry.path, entry.kind.into(), None);
            if listed_entry.kind == EntryKind::Directory
                && depth(&listed_entry.name) < self.depth
                && (self.hidden || !is_hidden(&entry.path))
            {
                directories.push(entry.path.clone());
            }
            listing.entries.push(listed_entry);
            listed.insert(entry.path);
        }
        let unreadable: HashSet<_> = walk.errors.into_iter().map(|error| error.path).collect();
        directories.retain(|path| !unreadable.contains(path));
        // After a truncated walk, files are indistinguishable from unlisted entries.
        if !listing.incomplete {
            let adding = self.add_unlisted(&mut listing, directories, &listed);
            match timeout_at(self.deadline, adding).await {
                Ok(added) => added?,
                Err(_) => listing.incomplete = true,
            }
        }
        listing
            .entries
            .sort_by_cached_key(|entry| (depth(&entry.name), PathBuf::from(&entry.name)));
        Ok(listing)
    }

    async fn add_unlisted(
        &self,
        listing: &mut Listing,
        directories: Vec<PathBuf>,
        listed: &HashSet<PathBuf>,
    ) -> Result<(), FileError> {
        let reading = stream::iter(directories).map(|directory| async move {
            special_entries::unlisted_entries(self.files, &directory, listed).await
        });
        let mut found = reading.buffered(self.concurrency);
        while let Some(unlisted) = found.next().await {
            let timed_out = Instant::now() >= self.deadline;
            if timed_out || listing.entries.len() as u64 >= WALK_ENTRIES {
                listing.incomplete = true;
                return Ok(());
            }
            match unlisted {
                Ok(unlisted) => listing.entries.extend(
                    unlisted
                        .iter()
                        .map(|(path, target)| self.entry(path, EntryKind::Link, Some(*target))),
                ),
                Err(error) if error.executor_error().is_some() => return Err(error),
                Err(_) => listing.unreadable += 1,
            }
        }
        Ok(())
    }

    fn entry(&self, path: &Path, kind: EntryKind, unlisted: Option<LinkTarget>) -> Entry {
        let name = path.strip_prefix(&self.root).unwrap_or(path);
        Entry {
            name: name.display().to_string(),
            kind,
            leads_to: None,
            size_bytes: None,
            unlisted,
        }
    }

    /// Determines the types and sizes of the entries in the response, until the deadline.
    async fn inspect_all(&self, listing: &mut Listing, sizes: bool) -> Result<(), FileError> {
        let page = std::mem::take(&mut listing.entries);
        let inspecting = stream::iter(page).map(|mut entry| async move {
            let inspected = timeout_at(self.deadline, self.inspect(&mut entry, sizes)).await;
            (entry, inspected)
        });
        let mut inspecting = inspecting.buffered(self.concurrency);
        while let Some((entry, inspected)) = inspecting.next().await {
            listing.incomplete |= inspected.is_err();
            if inspected.unwrap_or(Ok(true))? {
                listing.entries.push(entry);
            }
        }
        Ok(())
    }

    /// Returns false if the entry no longer exists. Fails only if the executor is lost.
    async fn inspect(&self, entry: &mut Entry, sizes: bool) -> Result<bool, FileError> {
        let path = self.root.join(&entry.name);
        if let Some(target) = entry.unlisted {
            match special_entries::inspect(self.files, &path, target).await? {
                Some((kind, target)) => (entry.kind, entry.leads_to) = (kind, target),
                None => return Ok(false),
            }
        }
        if sizes && entry.kind == EntryKind::File {
            let metadata = self.files.metadata(path).await;
            entry.size_bytes = metadata.ok().map(|metadata| metadata.size);
        }
        Ok(true)
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

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = text::count(self.total_entries, "entry", "entries");
        write!(f, "{} ({count})", self.path)?;
        if self.incomplete {
            f.write_str("; incomplete: too many entries, or timed out; list a subdirectory")?;
        }
        if self.unreadable > 0 {
            let count = text::count(self.unreadable, "directory", "directories");
            write!(f, "; {count} could not be read")?;
        }
        if let Some(next) = self.next_skip {
            write!(
                f,
                "; there are more, continue with \"skip_entries\": {next}"
            )?;
        }
        for entry in &self.entries {
            let suffix = match (entry.kind, entry.leads_to) {
                (EntryKind::Directory, _) => "/",
                (EntryKind::File, _) => "",
                (EntryKind::Link, Some(LinkTarget::Directory)) => "  (link to a directory)",
                (EntryKind::Link, Some(LinkTarget::File)) => "  (link to a file)",
                (EntryKind::Link, Some(LinkTarget::Other)) => "  (link)",
                (EntryKind::Link, Some(LinkTarget::Nothing)) => "  (broken link)",
                (EntryKind::Link, None) => "  (link with an inaccessible target)",
                (EntryKind::Other, _) => "  (neither file nor directory)",
            };
            write!(f, "\n{}{suffix}", entry.name)?;
            if let Some(size) = entry.size_bytes {
                write!(f, "  {}", text::bytes(size))?;
            }
        }
        Ok(())
    }
}
