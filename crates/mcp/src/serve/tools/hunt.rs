//! A search on its way through a place's files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use globset::GlobMatcher;
use outpost_client::{EntryKind, FileError, FileErrorKind, Files, Walk, WalkOptions};
use regex::bytes::Regex;
use tokio::time::Instant;

use super::{
    shortfall::Shortfall,
    strays::{Nature, Stray, looked_at},
    together::together,
};
use crate::serve::{
    Bounds, Mishap,
    files::{
        grep::{self, Hit, Wish},
        ignore::{RULES, Rules},
    },
};

/// The most names in one directory that are looked at.
const NAMES: u64 = 50_000;
/// The most of a `.gitignore` that is read.
const RULES_BYTES: u64 = 256 * 1024;

/// What is looked for, and where.
pub(super) struct Hunt {
    pub(super) files: Files,
    pub(super) root: PathBuf,
    pub(super) pattern: Option<Regex>,
    pub(super) glob: Option<GlobMatcher>,
    pub(super) hidden: bool,
    pub(super) ignored: bool,
    pub(super) files_only: bool,
    pub(super) wish: Wish,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) files: Vec<InFile>,
    /// Lines, or files where lines were not asked for.
    pub(super) matches: usize,
    pub(super) searched: usize,
    pub(super) more: bool,
    /// Why it isn't everything.
    pub(super) shortfall: Shortfall,
    /// How many bytes of lines and names there are.
    bytes: usize,
}

/// What was found in one file.
pub(super) struct InFile {
    pub(super) path: String,
    pub(super) link: bool,
    pub(super) hits: Vec<Hit>,
}

/// A directory that was looked into.
struct Looked {
    walk: Result<Walk, FileError>,
    /// What the walk has left out, where names are what is looked for.
    strays: Result<Vec<(Stray, Nature)>, FileError>,
    rules: Rules,
}

/// Something worth a look.
#[derive(Clone)]
struct Candidate {
    path: PathBuf,
    link: bool,
}

impl Hunt {
    /// Looks into directories level by level, and then into files. It ends early
    /// when there is enough, or when it takes too long.
    pub(super) async fn run(mut self, bounds: &Bounds) -> Result<Found, Mishap> {
        let deadline = Instant::now() + bounds.search;
        let mut found = Found::default();
        let known = self.files.metadata(&self.root).await?;
        if known.is_directory && known.is_symlink {
            // A walk doesn't follow links, and who names one means what it leads to.
            self.root = self.files.canonicalize(&self.root).await?;
        }
        let candidates = match known.is_directory {
            true => self.candidates(bounds, deadline, &mut found).await?,
            false => {
                let name = self.root.file_name().map(Path::new);
                let named = name.is_none_or(|name| self.matches(name));
                let only = Candidate {
                    path: self.root.clone(),
                    link: known.is_symlink,
                };
                named.then_some(only).into_iter().collect()
            }
        };
        match &self.pattern {
            None => self.name(candidates, &mut found),
            Some(pattern) => {
                let pattern = Arc::new(pattern.clone());
                self.read(candidates, &pattern, bounds, deadline, &mut found)
                    .await?;
            }
        }
        Ok(found)
    }

    /// The files that are worth a look, level by level.
    async fn candidates(
        &self,
        bounds: &Bounds,
        deadline: Instant,
        found: &mut Found,
    ) -> Result<Vec<Candidate>, Mishap> {
        let mut level = vec![(self.root.clone(), Rules::new(self.hidden))];
        let mut candidates = Vec::new();
        let mut directories = 0;
        let mut first = true;
        while !level.is_empty() {
            let room = bounds.search_directories - directories;
            if level.len() > room {
                found.shortfall.because("there are too many directories");
                level.truncate(room);
            }
            directories += level.len();
            let looked = together(std::mem::take(&mut level), bounds.search_at_once, |next| {
                look(
                    self.files.clone(),
                    next,
                    !self.ignored,
                    self.pattern.is_none(),
                )
            });
            let Ok(looked) = tokio::time::timeout_at(deadline, looked).await else {
                found.shortfall.because("it took too long");
                break;
            };
            for looked in looked {
                let walk = match looked.walk {
                    Ok(walk) => walk,
                    // The place is gone, and the rest would be no other.
                    Err(error) if first || error.place().is_some() => return Err(error.into()),
                    Err(_) => {
                        found.shortfall.directories += 1;
                        continue;
                    }
                };
                found.shortfall.directories += walk.errors.len() as u64;
                if walk.truncated {
                    found.shortfall.because("a directory has too many entries");
                }
                for entry in walk.entries {
                    let path = entry.path.into_path();
                    let is_directory = entry.kind == EntryKind::Directory;
                    if looked.rules.skip(&path, is_directory) {
                        continue;
                    }
                    if is_directory {
                        level.push((path, looked.rules.clone()));
                    } else if self.is_named(&path) {
                        candidates.push(Candidate { path, link: false });
                    }
                }
                let strays = match looked.strays {
                    Ok(strays) => strays,
                    Err(error) if error.place().is_some() => return Err(error.into()),
                    Err(_) => {
                        found.shortfall.directories += 1;
                        continue;
                    }
                };
                for (stray, nature) in strays {
                    let link = matches!(nature, Nature::Link(_));
                    // Even one to a directory is a file to git.
                    if link && !looked.rules.skip(&stray.path, false) && self.is_named(&stray.path)
                    {
                        let path = stray.path;
                        candidates.push(Candidate { path, link });
                    }
                }
            }
            first = false;
            if candidates.len() > bounds.search_files {
                candidates.truncate(bounds.search_files);
                found.shortfall.because("there are too many files");
                break;
            }
        }
        Ok(candidates)
    }

    fn is_named(&self, path: &Path) -> bool {
        self.matches(self.below(path))
    }

    fn matches(&self, below: &Path) -> bool {
        let glob = self.glob.as_ref();
        glob.is_none_or(|glob| glob.is_match(below))
    }

    fn below<'a>(&self, path: &'a Path) -> &'a Path {
        match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => path,
            Ok(below) => below,
            Err(_) => path,
        }
    }

    fn name(&self, candidates: Vec<Candidate>, found: &mut Found) {
        found.searched = candidates.len();
        for Candidate { path, link } in candidates {
            if found.matches == self.wish.most || found.bytes >= self.wish.bytes {
                found.more = true;
                return;
            }
            found.matches += 1;
            found.add(self.in_file(&path, link, Vec::new()));
        }
    }

    async fn read(
        &self,
        candidates: Vec<Candidate>,
        pattern: &Arc<Regex>,
        bounds: &Bounds,
        deadline: Instant,
        found: &mut Found,
    ) -> Result<(), Mishap> {
        let mut bytes = 0;
        for some in candidates.chunks(bounds.search_at_once) {
            let contents = together(some.iter().cloned(), bounds.search_at_once, |one| {
                content(self.files.clone(), one.path, bounds.file_whole)
            });
            let Ok(contents) = tokio::time::timeout_at(deadline, contents).await else {
                found.shortfall.because("it took too long");
                return Ok(());
            };
            for (path, content) in contents {
                let content = match content {
                    Ok(Some(content)) => content,
                    Ok(None) => {
                        found
                            .shortfall
                            .because("files that are too large were left out");
                        continue;
                    }
                    // So it is with the only file that was to be searched.
                    Err(error) if error.place().is_some() || path == self.root => {
                        return Err(error.into());
                    }
                    // It is gone by now, and then there is nothing to miss.
                    Err(error) if error.kind() == FileErrorKind::NotFound => continue,
                    Err(_) => {
                        found.shortfall.files += 1;
                        continue;
                    }
                };
                found.searched += 1;
                bytes += content.len() as u64;
                if grep::is_binary(&content) {
                    continue;
                }
                if self.search(&path, &content, pattern, found) {
                    return Ok(());
                }
            }
            if bytes > bounds.search_bytes {
                found.shortfall.because("there is too much to read");
                return Ok(());
            }
            // Other calls have their turn.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Searches one file; true if there is enough now.
    fn search(&self, path: &Path, content: &[u8], pattern: &Regex, found: &mut Found) -> bool {
        let left = self.wish.most - found.matches;
        let most = if self.files_only { left.min(1) } else { left };
        let bytes = self.wish.bytes.saturating_sub(found.bytes);
        let wish = Wish {
            most,
            bytes,
            ..self.wish
        };
        let (hits, more) = grep::lines(content, pattern, wish);
        if hits.is_empty() {
            // There was no room even for the first one.
            found.more |= more;
            return more;
        }
        let matches = hits.iter().filter(|hit| !hit.context).count();
        found.matches += matches;
        let hits = if self.files_only { Vec::new() } else { hits };
        found.add(self.in_file(path, false, hits));
        let full = more && !self.files_only;
        found.more |= full;
        full
    }

    fn in_file(&self, path: &Path, link: bool, hits: Vec<Hit>) -> InFile {
        InFile {
            path: self.below(path).display().to_string(),
            link,
            hits,
        }
    }
}

impl Found {
    fn add(&mut self, file: InFile) {
        let lines = file.hits.iter().map(|hit| hit.text.len());
        self.bytes += file.path.len() + lines.sum::<usize>();
        self.files.push(file);
    }
}

/// Looks into a directory, and at what it says about itself.
async fn look(files: Files, (path, above): (PathBuf, Rules), heed: bool, links: bool) -> Looked {
    let options = WalkOptions {
        max_depth: 0,
        max_directories: 1,
        max_entries: NAMES,
        follow_directory_symlinks: false,
        prune_hidden_directories: false,
    };
    let walk = files.walk(&path, options).await;
    let mut rules = above;
    let mut left_out = Ok(Vec::new());
    if let Ok(walk) = &walk {
        // Of what a walk had no room for nobody can tell that it was left out.
        if links && !walk.truncated {
            let known = walk
                .entries
                .iter()
                .map(|entry| entry.path.clone().into_path());
            left_out = looked_at(&files, &path, &known.collect()).await;
        }
        let said = path.join(RULES);
        let says = |entry: &outpost_client::WalkEntry| entry.path.clone().into_path() == said;
        if heed && walk.entries.iter().any(says) {
            let read = async { files.open(&said).await?.read_at(0, RULES_BYTES).await };
            if let Ok(text) = read.await {
                rules = rules.below(&path, &String::from_utf8_lossy(&text));
            }
        }
    }
    Looked {
        walk,
        strays: left_out,
        rules,
    }
}

/// What is in a file; nothing if it is too large.
async fn content(
    files: Files,
    path: PathBuf,
    most: u64,
) -> (PathBuf, Result<Option<Vec<u8>>, FileError>) {
    let read = async {
        let mut file = files.open(&path).await?;
        if file.metadata().size > most {
            return Ok(None);
        }
        let mut all = Vec::new();
        loop {
            let block = file.next_bytes().await?;
            all.extend_from_slice(&block);
            if all.len() as u64 > most {
                return Ok(None);
            }
            if block.is_empty() {
                return Ok(Some(all));
            }
        }
    };
    let content = read.await;
    (path, content)
}
