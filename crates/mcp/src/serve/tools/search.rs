//! Searches a directory tree for files and lines.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use globset::GlobMatcher;
use outpost_client::{EntryKind, FileError, FileErrorKind, Files, Walk, WalkOptions};
use regex::bytes::Regex;
use tokio::time::Instant;

use super::{
    concurrent::concurrent,
    list::unlisted_links,
    search_result::{FoundFile, SearchResult},
};
use crate::serve::{
    ToolError, ToolLimits,
    files::{
        grep::{self, FoundLine, SearchLimits},
        ignore::{GITIGNORE, IgnoreRules},
    },
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

/// The content of one directory.
struct Directory {
    walk: Result<Walk, FileError>,
    /// Links, which a walk doesn't list. Empty in a search for lines.
    links: Result<Vec<PathBuf>, FileError>,
    rules: IgnoreRules,
}

#[derive(Clone)]
struct Candidate {
    path: PathBuf,
    link: bool,
}

impl Search {
    /// Collects candidates level by level, and then searches their content. Stops early at
    /// a limit or after the timeout.
    pub(super) async fn run(mut self, limits: &ToolLimits) -> Result<SearchResult, ToolError> {
        let deadline = Instant::now() + limits.search;
        let mut result = SearchResult::default();
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
        Ok(result)
    }

    /// Collects the files to search, level by level.
    async fn candidates(
        &self,
        limits: &ToolLimits,
        deadline: Instant,
        result: &mut SearchResult,
    ) -> Result<Vec<Candidate>, ToolError> {
        let mut level = vec![(self.root.clone(), IgnoreRules::new(self.include_hidden))];
        let mut candidates = Vec::new();
        let mut directory_count = 0;
        let mut is_root = true;
        while !level.is_empty() {
            let room = limits.search_directories - directory_count;
            if level.len() > room {
                result.incomplete.limit = Some("too many directories");
                level.truncate(room);
            }
            directory_count += level.len();
            let reading = concurrent(std::mem::take(&mut level), limits.concurrency, |next| {
                read_directory(
                    self.files.clone(),
                    next,
                    !self.include_ignored,
                    self.pattern.is_none(),
                )
            });
            let Ok(directories) = tokio::time::timeout_at(deadline, reading).await else {
                result.incomplete.limit = Some("timed out");
                break;
            };
            for directory in directories {
                let walk = match directory.walk {
                    Ok(walk) => walk,
                    Err(error) if is_root || error.executor_error().is_some() => {
                        return Err(error.into());
                    }
                    Err(_) => {
                        result.incomplete.unreadable_directories += 1;
                        continue;
                    }
                };
                result.incomplete.unreadable_directories += walk.errors.len() as u64;
                if walk.truncated {
                    result.incomplete.limit = Some("a directory has too many entries");
                }
                for entry in walk.entries {
                    let path = entry.path;
                    let is_directory = entry.kind == EntryKind::Directory;
                    if directory.rules.ignores(&path, is_directory) {
                        continue;
                    }
                    if is_directory {
                        level.push((path, directory.rules.clone()));
                    } else if self.matches_path(&path) {
                        candidates.push(Candidate { path, link: false });
                    }
                }
                let links = match directory.links {
                    Ok(links) => links,
                    Err(error) if error.executor_error().is_some() => return Err(error.into()),
                    Err(_) => {
                        result.incomplete.unreadable_directories += 1;
                        continue;
                    }
                };
                for path in links {
                    // To git, a link to a directory is a file.
                    if !directory.rules.ignores(&path, false) && self.matches_path(&path) {
                        candidates.push(Candidate { path, link: true });
                    }
                }
            }
            is_root = false;
            if candidates.len() > limits.search_files {
                candidates.truncate(limits.search_files);
                result.incomplete.limit = Some("too many files");
                break;
            }
        }
        Ok(candidates)
    }

    fn matches_path(&self, path: &Path) -> bool {
        self.matches_glob(self.relative(path))
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

    fn add_files(&self, candidates: Vec<Candidate>, result: &mut SearchResult) {
        result.searched = candidates.len();
        for Candidate { path, link } in candidates {
            if result.matches == self.limits.matches || result.bytes >= self.limits.bytes {
                result.more = true;
                return;
            }
            result.matches += 1;
            result.add(self.found_file(&path, link, Vec::new()));
        }
    }

    async fn search_files(
        &self,
        candidates: Vec<Candidate>,
        pattern: &Regex,
        limits: &ToolLimits,
        deadline: Instant,
        result: &mut SearchResult,
    ) -> Result<(), ToolError> {
        let mut bytes = 0;
        for batch in candidates.chunks(limits.concurrency) {
            let reading = concurrent(batch.iter().cloned(), limits.concurrency, |candidate| {
                read_file(self.files.clone(), candidate.path, limits.file_whole)
            });
            let Ok(contents) = tokio::time::timeout_at(deadline, reading).await else {
                result.incomplete.limit = Some("timed out");
                return Ok(());
            };
            for (path, content) in contents {
                let content = match content {
                    Ok(Some(content)) => content,
                    Ok(None) => {
                        result.incomplete.limit = Some("files that are too large were skipped");
                        continue;
                    }
                    Err(error) if error.executor_error().is_some() || path == self.root => {
                        return Err(error.into());
                    }
                    // Deleted since the walk.
                    Err(error) if error.kind() == FileErrorKind::NotFound => continue,
                    Err(_) => {
                        result.incomplete.unreadable_files += 1;
                        continue;
                    }
                };
                result.searched += 1;
                bytes += content.len() as u64;
                if grep::is_binary(&content) {
                    continue;
                }
                if self.search_content(&path, &content, pattern, result) {
                    return Ok(());
                }
            }
            if bytes > limits.search_bytes {
                result.incomplete.limit = Some("too much content");
                return Ok(());
            }
            // Matching doesn't await, so yield to other calls.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Searches one file. Returns true if the result is full.
    fn search_content(
        &self,
        path: &Path,
        content: &[u8],
        pattern: &Regex,
        result: &mut SearchResult,
    ) -> bool {
        let left = self.limits.matches - result.matches;
        let limits = SearchLimits {
            matches: if self.files_only { left.min(1) } else { left },
            bytes: self.limits.bytes.saturating_sub(result.bytes),
            ..self.limits
        };
        let (lines, more) = grep::lines(content, pattern, limits);
        if lines.is_empty() {
            // A match without room for it makes the result full.
            result.more |= more;
            return more;
        }
        result.matches += lines.iter().filter(|line| !line.context).count();
        let lines = if self.files_only { Vec::new() } else { lines };
        result.add(self.found_file(path, false, lines));
        let full = more && !self.files_only;
        result.more |= full;
        full
    }

    fn found_file(&self, path: &Path, link: bool, lines: Vec<FoundLine>) -> FoundFile {
        FoundFile {
            path: self.relative(path).display().to_string(),
            link,
            lines,
        }
    }
}

/// Reads a directory, its `.gitignore` if `gitignore` is set, and its links if `links` is
/// set.
async fn read_directory(
    files: Files,
    (path, mut rules): (PathBuf, IgnoreRules),
    gitignore: bool,
    links: bool,
) -> Directory {
    let options = WalkOptions {
        max_depth: 0,
        max_directories: 1,
        max_entries: DIRECTORY_ENTRIES,
        follow_directory_symlinks: false,
        prune_hidden_directories: false,
    };
    let walk = files.walk(&path, options).await;
    let mut found_links = Ok(Vec::new());
    if let Ok(walk) = &walk {
        let listed: HashSet<_> = walk
            .entries
            .iter()
            .map(|entry| entry.path.clone())
            .collect();
        // After a truncated walk, files are indistinguishable from unlisted entries.
        if links && !walk.truncated {
            found_links = unlisted_links(&files, &path, &listed).await;
        }
        let file = path.join(GITIGNORE);
        if gitignore && listed.contains(&file) {
            let read = async { files.open(&file).await?.read_at(0, GITIGNORE_BYTES).await };
            if let Ok(text) = read.await {
                rules = rules.with_gitignore(&path, &String::from_utf8_lossy(&text));
            }
        }
    }
    Directory {
        walk,
        links: found_links,
        rules,
    }
}

/// Reads a file. Returns `None` if it is larger than `limit`.
async fn read_file(
    files: Files,
    path: PathBuf,
    limit: u64,
) -> (PathBuf, Result<Option<Vec<u8>>, FileError>) {
    let read = async {
        let mut file = files.open(&path).await?;
        if file.metadata().size > limit {
            return Ok(None);
        }
        let mut content = Vec::new();
        loop {
            let block = file.next_bytes().await?;
            content.extend_from_slice(&block);
            if content.len() as u64 > limit {
                return Ok(None);
            }
            if block.is_empty() {
                return Ok(Some(content));
            }
        }
    };
    let content = read.await;
    (path, content)
}
