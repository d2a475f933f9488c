//! Searches a directory tree for files and lines.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use futures_util::{StreamExt as _, stream};
use globset::GlobMatcher;
use outpost_client::{FileError, FileErrorKind, Files, WalkOptions};
use regex::bytes::Regex;
use tokio::time::{Instant, timeout_at};

use super::{
    search_files::{FoundFile, SearchResult},
    special_entries::{EntryKind, unlisted_links},
};
use crate::serve::{
    ToolError, ToolLimits,
    files::{
        grep::{self, FoundLine, SearchLimits},
        ignore::{GITIGNORE, IgnoreRules},
    },
    text,
};

/// Maximum number of entries per directory.
const DIRECTORY_ENTRIES: u64 = 50_000;
/// Maximum size of a `.gitignore`.
const GITIGNORE_BYTES: u64 = 256 * 1024;

/// A search for files by name, or for lines by pattern.
pub(super) struct Search {
    pub(super) files: Files,
    pub(super) root: PathBuf,
    pub(super) pattern: Option<Regex>,
    pub(super) glob: Option<GlobMatcher>,
    pub(super) include_hidden: bool,
    pub(super) include_ignored: bool,
    pub(super) files_only: bool,
    pub(super) limits: SearchLimits,
}

/// The matches of a search, and the reasons why it may be incomplete.
#[derive(Default)]
struct SearchState {
    found: SearchResult,
    /// Total size of lines and names.
    bytes: usize,
    /// The last limit that was reached.
    limit: Option<&'static str>,
    unreadable_directories: u64,
    unreadable_files: u64,
}

impl SearchState {
    fn finish(mut self) -> SearchResult {
        let directories = text::count(self.unreadable_directories, "directory", "directories");
        let files = text::count(self.unreadable_files, "file", "files");
        let reasons = [
            self.limit.map(str::to_owned),
            (self.unreadable_directories > 0).then(|| format!("{directories} could not be read")),
            (self.unreadable_files > 0).then(|| format!("{files} could not be read")),
        ];
        let reasons: Vec<_> = reasons.into_iter().flatten().collect();
        self.found.incomplete = (!reasons.is_empty()).then(|| reasons.join(", "));
        self.found
    }
}

/// The content of one directory.
struct Directory {
    entries: Vec<(PathBuf, EntryKind)>,
    truncated: bool,
    unreadable: u64,
    rules: IgnoreRules,
}

/// A file whose content is to be searched.
struct Candidate {
    path: PathBuf,
    link: bool,
}

impl Search {
    /// Collects candidates level by level, and then searches their content. Stops early at
    /// a limit or after the timeout.
    pub(super) async fn run(mut self, limits: &ToolLimits) -> Result<SearchResult, ToolError> {
        let deadline = Instant::now() + limits.search_timeout;
        let mut result = SearchState::default();
        let metadata = self.files.metadata(&self.root).await?;
        if metadata.is_directory && metadata.is_symlink {
            // A walk doesn't follow links, but a link given as the path stands for its target.
            self.root = self.files.canonicalize(&self.root).await?;
        }
        let candidates = if metadata.is_directory {
            self.candidates(limits, deadline, &mut result).await?
        } else {
            let name = self.root.file_name().map(Path::new);
            let candidate = Candidate {
                path: self.root.clone(),
                link: metadata.is_symlink,
            };
            let matches = name.is_none_or(|name| self.matches_glob(name));
            matches.then_some(candidate).into_iter().collect()
        };
        match &self.pattern {
            None => self.add_files(candidates, &mut result),
            Some(pattern) => {
                self.search_files(candidates, pattern, limits, deadline, &mut result)
                    .await?;
            }
        }
        Ok(result.finish())
    }

    /// Collects the files to search, level by level.
    async fn candidates(
        &self,
        limits: &ToolLimits,
        deadline: Instant,
        result: &mut SearchState,
    ) -> Result<Vec<Candidate>, ToolError> {
        let mut level = vec![(self.root.clone(), IgnoreRules::new(self.include_hidden))];
        let mut candidates = Vec::new();
        let mut space = limits.search_directories;
        let mut is_root = true;
        while !level.is_empty() {
            if level.len() > space {
                result.limit = Some("too many directories");
                level.truncate(space);
            }
            space -= level.len();
            let reading = stream::iter(std::mem::take(&mut level))
                .map(|(path, rules)| self.read_directory(path, rules))
                .buffered(limits.concurrency)
                .collect::<Vec<_>>();
            let Ok(directories) = timeout_at(deadline, reading).await else {
                result.limit = Some("timed out");
                break;
            };
            for directory in directories {
                let directory = match directory {
                    Ok(directory) => directory,
                    Err(error) if is_root || error.executor_error().is_some() => {
                        return Err(error.into());
                    }
                    Err(_) => {
                        result.unreadable_directories += 1;
                        continue;
                    }
                };
                result.unreadable_directories += directory.unreadable;
                if directory.truncated {
                    result.limit = Some("a directory has too many entries");
                }
                for (path, kind) in directory.entries {
                    // To git, a link to a directory is a file.
                    let is_directory = kind == EntryKind::Directory;
                    if directory.rules.ignores(&path, is_directory) {
                        continue;
                    }
                    if is_directory {
                        level.push((path, directory.rules.clone()));
                    } else if self.matches_glob(self.relative(&path)) {
                        let link = kind == EntryKind::Link;
                        candidates.push(Candidate { path, link });
                    }
                }
            }
            is_root = false;
            if candidates.len() > limits.search_files {
                candidates.truncate(limits.search_files);
                result.limit = Some("too many files");
                break;
            }
        }
        Ok(candidates)
    }

    /// Reads a directory: its files and directories, its links in a search for names, and its
    /// `.gitignore`.
    async fn read_directory(
        &self,
        path: PathBuf,
        mut rules: IgnoreRules,
    ) -> Result<Directory, FileError> {
        let options = WalkOptions {
            max_depth: 0,
            max_directories: 1,
            max_entries: DIRECTORY_ENTRIES,
            follow_directory_symlinks: false,
            prune_hidden_directories: false,
        };
        let walk = self.files.walk(&path, options).await?;
        let mut unreadable = walk.errors.len() as u64;
        let entries = walk.entries.into_iter();
        let mut entries: Vec<_> = entries
            .map(|entry| (entry.path, entry.kind.into()))
            .collect();
        let listed: HashSet<_> = entries.iter().map(|(path, _)| path.clone()).collect();
        // After a truncated walk, files are indistinguishable from unlisted entries.
        if self.pattern.is_none() && !walk.truncated {
            match unlisted_links(&self.files, &path, &listed).await {
                Ok(links) => entries.extend(links.into_iter().map(|path| (path, EntryKind::Link))),
                Err(error) if error.executor_error().is_some() => return Err(error),
                Err(_) => unreadable += 1,
            }
        }
        let file = path.join(GITIGNORE);
        if !self.include_ignored && listed.contains(&file) {
            let read = async {
                let file = self.files.open(&file).await?;
                file.read_at(0, GITIGNORE_BYTES).await
            };
            if let Ok(text) = read.await {
                rules = rules.with_gitignore(&path, &String::from_utf8_lossy(&text));
            }
        }
        Ok(Directory {
            entries,
            truncated: walk.truncated,
            unreadable,
            rules,
        })
    }

    fn matches_glob(&self, relative: &Path) -> bool {
        let glob = self.glob.as_ref();
        glob.is_none_or(|glob| glob.is_match(relative))
    }

    fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        match path.strip_prefix(&self.root) {
            Ok(relative) if !relative.as_os_str().is_empty() => relative,
            _ => path,
        }
    }

    fn add_files(&self, candidates: Vec<Candidate>, result: &mut SearchState) {
        result.found.searched_files = candidates.len();
        for Candidate { path, link } in candidates {
            let count = result.found.match_count;
            if count == self.limits.matches || result.bytes >= self.limits.bytes {
                result.found.more = true;
                return;
            }
            result.found.match_count += 1;
            self.add(&path, link, Vec::new(), result);
        }
    }

    async fn search_files(
        &self,
        candidates: Vec<Candidate>,
        pattern: &Regex,
        limits: &ToolLimits,
        deadline: Instant,
        result: &mut SearchState,
    ) -> Result<(), ToolError> {
        let mut bytes = 0;
        let reading = stream::iter(candidates).map(|Candidate { path, .. }| async move {
            let content = self.read_file(&path, limits.whole_file_bytes).await;
            (path, content)
        });
        let mut contents = reading.buffered(limits.concurrency);
        loop {
            // Matching doesn't await, so yield to other calls.
            tokio::task::yield_now().await;
            let (path, content) = match timeout_at(deadline, contents.next()).await {
                Ok(Some(read)) => read,
                Ok(None) => return Ok(()),
                Err(_) => {
                    result.limit = Some("timed out");
                    return Ok(());
                }
            };
            let content = match content {
                Ok(Some(content)) => content,
                Ok(None) => {
                    result.limit = Some("files that are too large were skipped");
                    continue;
                }
                Err(error) if error.executor_error().is_some() || path == self.root => {
                    return Err(error.into());
                }
                // Deleted since the walk.
                Err(error) if error.kind() == FileErrorKind::NotFound => continue,
                Err(_) => {
                    result.unreadable_files += 1;
                    continue;
                }
            };
            result.found.searched_files += 1;
            bytes += content.len() as u64;
            if !grep::is_binary(&content) && self.search_content(&path, &content, pattern, result) {
                return Ok(());
            }
            if bytes > limits.search_bytes {
                result.limit = Some("too much content");
                return Ok(());
            }
        }
    }

    /// Reads a file. Returns `None` if it is larger than `limit`.
    async fn read_file(&self, path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
        let mut file = self.files.open(path).await?;
        let mut content = Vec::new();
        while file.metadata().size <= limit && content.len() as u64 <= limit {
            let block = file.next_bytes().await?;
            if block.is_empty() {
                return Ok(Some(content));
            }
            content.extend_from_slice(&block);
        }
        Ok(None)
    }

    /// Searches one file. Returns true if the result is full.
    fn search_content(
        &self,
        path: &Path,
        content: &[u8],
        pattern: &Regex,
        result: &mut SearchState,
    ) -> bool {
        let left = self.limits.matches - result.found.match_count;
        let limits = SearchLimits {
            matches: if self.files_only { left.min(1) } else { left },
            bytes: self.limits.bytes.saturating_sub(result.bytes),
            ..self.limits
        };
        let (lines, more) = grep::lines(content, pattern, limits);
        if lines.is_empty() {
            // A match without space for it makes the result full.
            result.found.more |= more;
            return more;
        }
        result.found.match_count += lines.iter().filter(|line| !line.context).count();
        let lines = if self.files_only { Vec::new() } else { lines };
        self.add(path, false, lines, result);
        let full = more && !self.files_only;
        result.found.more |= full;
        full
    }

    fn add(&self, path: &Path, link: bool, lines: Vec<FoundLine>, result: &mut SearchState) {
        let path = self.relative(path).display().to_string();
        let lines_bytes: usize = lines.iter().map(|line| line.text.len()).sum();
        result.bytes += path.len() + lines_bytes;
        result.found.files.push(FoundFile { path, link, lines });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_lists_every_reason() {
        assert_eq!(SearchState::default().finish().incomplete, None);
        let result = SearchState {
            limit: Some("timed out"),
            unreadable_directories: 1,
            unreadable_files: 2,
            ..SearchState::default()
        };
        assert_eq!(
            result.finish().incomplete.as_deref(),
            Some("timed out, 1 directory could not be read, 2 files could not be read")
        );
    }
}
