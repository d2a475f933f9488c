//! Finds the matches of patterns.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    FileSystemView, PlanError, PlanLimits,
    file_system::is_absence,
    pattern::Pattern,
    pattern_matcher::PatternMatcher,
    resolve::{End, resolve},
};

/// The time limit for all scans of a plan. Reasonable scans take a fraction of a second.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Finds matches, with limits for all patterns of a plan together.
pub(super) struct Scan<'a> {
    view: &'a dyn FileSystemView,
    max_depth: usize,
    visited: usize,
    limit: usize,
    deadline: Instant,
    max_path_bytes: usize,
    /// Directories that can't be read and may contain matches.
    pub(super) closed: Vec<PathBuf>,
    /// Symbolic links on the path to the base directory of a pattern, each with that base directory.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Directories whose path is too long for the path of an entry to fit the limit.
    pub(super) too_long: Vec<PathBuf>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(
        view: &'a dyn FileSystemView,
        max_depth: Option<usize>,
        limits: &PlanLimits,
    ) -> Self {
        Scan {
            view,
            max_depth: max_depth.unwrap_or(usize::MAX),
            visited: 0,
            limit: limits.visited,
            deadline: view.now() + TIME_LIMIT,
            max_path_bytes: limits.path_bytes,
            closed: Vec::new(),
            links: Vec::new(),
            too_long: Vec::new(),
        }
    }

    /// Returns the matches of a pattern, without following symbolic links. Doesn't read directories for
    /// which `hidden` returns true; its second argument is whether the directory matches.
    pub(super) fn matches(
        &mut self,
        pattern: &Pattern,
        hidden: impl Fn(&Path, bool) -> bool,
    ) -> Result<Vec<PathBuf>, PlanError> {
        self.visit(1)?;
        let base = resolve(self.view, &pattern.base)?;
        if let End::OutOfReach { closed } = base.end {
            self.closed.push(closed);
            return Ok(Vec::new());
        }
        if pattern.is_literal() {
            return Ok(vec![base.path]);
        }
        let links = base.links.into_iter().map(|link| link.path);
        self.links
            .extend(links.map(|link| (link, pattern.base.clone())));
        let mut walk = PatternMatcher::new(pattern);
        let mut found = Vec::new();
        let mut open = vec![(PathBuf::new(), 1_usize)];
        while let Some((directory, depth)) = open.pop() {
            if depth > self.max_depth {
                continue;
            }
            walk.enter(&directory);
            for (name, is_directory) in self.list(&base.path.join(&directory))? {
                self.check_time()?;
                let name_match = walk.match_name(&name);
                let descends = is_directory && name_match.may_match_below;
                if !descends && !name_match.matches {
                    continue;
                }
                let relative = directory.join(name);
                let path = base.path.join(&relative);
                if descends && !hidden(&path, name_match.matches) {
                    if path.as_os_str().len() <= self.max_path_bytes {
                        open.push((relative, depth + 1));
                    } else if depth < self.max_depth {
                        self.too_long.push(path.clone());
                    }
                }
                if name_match.matches {
                    // Counted again, because the planner resolves the path of each match.
                    self.visit(1)?;
                    found.push(path);
                }
            }
        }
        Ok(found)
    }

    /// Counts inspected files. Empty directories and literal patterns count too.
    fn visit(&mut self, count: usize) -> Result<(), PlanError> {
        self.visited += count;
        if self.visited > self.limit {
            return Err(PlanError::ManyFiles { limit: self.limit });
        }
        self.check_time()
    }

    fn check_time(&self) -> Result<(), PlanError> {
        if self.view.now() < self.deadline {
            Ok(())
        } else {
            Err(PlanError::LongScan { limit: TIME_LIMIT })
        }
    }

    fn list(&mut self, directory: &Path) -> Result<Vec<(std::ffi::OsString, bool)>, PlanError> {
        self.visit(1)?;
        let names = match self.view.list(directory, self.limit - self.visited + 1) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let found = resolve(self.view, directory)?;
                self.closed.push(match found.end {
                    End::OutOfReach { closed } => closed,
                    _ => found.path,
                });
                return Ok(Vec::new());
            }
            // Removed since it was listed.
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            Err(error) => {
                let path = directory.to_owned();
                return Err(PlanError::Inspect { path, error });
            }
        };
        self.visit(names.len())?;
        Ok(names)
    }
}
