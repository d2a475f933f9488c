//! The tool `list_directory`.

use std::{fmt::Write as _, path::PathBuf};

use outpost_client::{FileError, Files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::{
    concurrent::concurrent,
    in_range,
    list::{DirectoryScan, EntryDetail, EntryKind, EntryType, LinkTarget, ScannedEntry},
};
use crate::serve::{CallContext, Effect, Tool, ToolError, ToolOutput, ToolServer, text};

const MAX_DEPTH: u64 = 20;

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

#[derive(Serialize, JsonSchema)]
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
}

impl Entry {
    fn new(name: String, entry_type: EntryType) -> Self {
        Entry {
            name,
            kind: entry_type.kind,
            leads_to: entry_type.target,
            size_bytes: None,
        }
    }
}

impl Tool for ListDirectory {
    const NAME: &'static str = "list_directory";
    const TITLE: &'static str = "List a directory";
    const DESCRIPTION: &'static str = "Lists the entries of a directory, and of its subdirectories \
        if depth is greater than 1. Symbolic links are listed but not followed. To find files by \
        name or content, use search_files.";
    const EFFECT: Effect = Effect::ReadOnly;

    type Output = Listing;

    async fn call(self, server: &ToolServer, context: &CallContext) -> Result<Listing, ToolError> {
        let limits = server.limits();
        let depth = in_range("depth", self.depth, 1, (1, MAX_DEPTH))?;
        let max_entries = in_range(
            "max_entries",
            self.max_entries,
            limits.entries as u64,
            (1, limits.entries_max as u64),
        )?;
        let executor = server.executor().await?;
        let path = server.path(&executor, self.path.as_deref());
        let files = server.files(&executor);
        let deadline = Instant::now() + limits.search;
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
                root: &root,
                depth,
                hidden: self.include_hidden.unwrap_or(false),
                concurrency: limits.concurrency,
                deadline,
            };
            let found = scan.run().await?;
            let total = found.entries.len() as u64;
            let skip = self.skip_entries.unwrap_or(0).min(total);
            let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let page = found.entries.into_iter().skip(index(skip));
            let page = page.take(index(max_entries));
            // Each name may be a long path, so their total size is bounded.
            let mut bytes = 0;
            let page = page.take_while(|entry| {
                let fits = bytes < limits.listed_bytes;
                bytes += entry.name.len();
                fits
            });
            let page: Vec<ScannedEntry> = page.collect();
            let end = skip + page.len() as u64;
            let inspector = Inspector {
                files: files.clone(),
                root,
                sizes: self.sizes.unwrap_or(false),
                deadline,
            };
            let inspected = concurrent(page, limits.concurrency, |entry| {
                inspector.clone().inspect(entry)
            });
            let (mut entries, mut timed_out) = (Vec::new(), false);
            for entry in inspected.await {
                match entry? {
                    Inspected::Entry(entry) => entries.push(entry),
                    Inspected::TimedOut(entry) => {
                        entries.push(entry);
                        timed_out = true;
                    }
                    Inspected::Gone => {}
                }
            }
            Ok(Listing {
                path: path.display().to_string(),
                entries,
                total_entries: total,
                next_skip: (end < total).then_some(end),
                incomplete: found.incomplete || timed_out,
                unreadable: found.unreadable,
            })
        };
        let message = || "listing".to_owned();
        context.run(limits.search, message, work).await?
    }
}

/// Determines the type and size of the entries in the response.
#[derive(Clone)]
struct Inspector {
    files: Files,
    root: PathBuf,
    sizes: bool,
    deadline: Instant,
}

enum Inspected {
    Entry(Entry),
    /// The deadline passed before everything was known.
    TimedOut(Entry),
    /// The entry no longer exists.
    Gone,
}

impl Inspector {
    /// Fails only if the executor is lost.
    async fn inspect(self, scanned: ScannedEntry) -> Result<Inspected, FileError> {
        let entry_type = match scanned.detail {
            EntryDetail::Known(entry_type) => entry_type,
            EntryDetail::Unlisted(unlisted) => {
                match timeout_at(self.deadline, unlisted.inspect(&self.files)).await {
                    Ok(inspected) => match inspected? {
                        Some(entry_type) => entry_type,
                        None => return Ok(Inspected::Gone),
                    },
                    Err(_) => {
                        let entry = Entry::new(scanned.name, EntryType::link(None));
                        return Ok(Inspected::TimedOut(entry));
                    }
                }
            }
        };
        let mut entry = Entry::new(scanned.name, entry_type);
        if self.sizes && entry.kind == EntryKind::File {
            let metadata = self.files.metadata(self.root.join(&entry.name));
            let Ok(metadata) = timeout_at(self.deadline, metadata).await else {
                return Ok(Inspected::TimedOut(entry));
            };
            entry.size_bytes = metadata.ok().map(|metadata| metadata.size);
        }
        Ok(Inspected::Entry(entry))
    }
}

impl ToolOutput for Listing {
    fn to_text(&self) -> String {
        let count = text::count(self.total_entries, "entry", "entries");
        let mut text = format!("{} ({count})", self.path);
        if self.incomplete {
            text.push_str("; incomplete: too many entries, or timed out; list a subdirectory");
        }
        if self.unreadable > 0 {
            let count = text::count(self.unreadable, "directory", "directories");
            let _ = write!(text, "; {count} could not be read");
        }
        if let Some(next) = self.next_skip {
            let _ = write!(
                text,
                "; there are more, continue with \"skip_entries\": {next}"
            );
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
            let size = entry
                .size_bytes
                .map(|size| format!("  {}", text::bytes(size)));
            let _ = write!(text, "\n{}{suffix}{}", entry.name, size.unwrap_or_default());
        }
        text
    }
}
