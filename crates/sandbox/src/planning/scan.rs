//! What patterns match, as of now.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    Bounds, PlanError, View,
    pattern::Pattern,
    resolve::{End, resolve},
    walk::Walk,
};

/// How long all of it may take. A scan that makes sense takes a small part of a second.
const WITHIN: Duration = Duration::from_secs(5);

/// Looks for patterns, within bounds for all of them together.
pub(super) struct Scan<'a> {
    view: &'a dyn View,
    max_depth: usize,
    visited: usize,
    limit: usize,
    until: Instant,
    /// Directories that we can't look into, although something in them may be meant.
    closed: Vec<PathBuf>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(view: &'a dyn View, max_depth: Option<usize>, bounds: &Bounds) -> Self {
        Scan {
            view,
            max_depth: max_depth.unwrap_or(usize::MAX),
            visited: 0,
            limit: bounds.visited,
            until: view.now() + WITHIN,
            closed: Vec::new(),
        }
    }

    /// Everything that a pattern matches, links not followed. Directories that are `hidden`, be it
    /// for a match, are not looked into.
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
        if pattern.is_plain() {
            return Ok(vec![base.path]);
        }
        let mut walk = Walk::new(pattern);
        let mut found = Vec::new();
        let mut open = vec![(PathBuf::new(), 1_usize)];
        while let Some((directory, depth)) = open.pop() {
            if depth > self.max_depth {
                continue;
            }
            walk.enter(&directory);
            for (name, is_directory) in self.list(&base.path.join(&directory))? {
                self.check_time()?;
                let bearing = walk.look_at(&name);
                let goes_on = is_directory && bearing.leads_below;
                if !goes_on && !bearing.matches {
                    continue;
                }
                let relative = directory.join(name);
                let path = base.path.join(&relative);
                if goes_on && !hidden(&path, bearing.matches) {
                    open.push((relative, depth + 1));
                }
                if bearing.matches {
                    // Somebody has to see where it leads.
                    self.visit(1)?;
                    found.push(path);
                }
            }
        }
        Ok(found)
    }

    /// The directories that could not be looked into. What is there may be meant.
    pub(super) fn into_closed(self) -> Vec<PathBuf> {
        self.closed
    }

    /// Counts what is looked at. Whatever takes time counts, a directory with nothing in it and a
    /// pattern that is just a path among it.
    fn visit(&mut self, count: usize) -> Result<(), PlanError> {
        self.visited += count;
        if self.visited > self.limit {
            return Err(PlanError::ManyFiles { limit: self.limit });
        }
        self.check_time()
    }

    fn check_time(&self) -> Result<(), PlanError> {
        match self.view.now() < self.until {
            true => Ok(()),
            false => Err(PlanError::LongScan { within: WITHIN }),
        }
    }

    fn list(&mut self, directory: &Path) -> Result<Vec<(std::ffi::OsString, bool)>, PlanError> {
        self.visit(1)?;
        let names = match self.view.list(directory, self.limit - self.visited + 1) {
            Ok(names) => names,
            Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {
                let found = resolve(self.view, directory)?;
                self.closed.push(match found.end {
                    End::OutOfReach { closed } => closed,
                    _ => found.path,
                });
                return Ok(Vec::new());
            }
            // It has just gone.
            Err(why)
                if matches!(
                    why.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Vec::new());
            }
            Err(why) => {
                let path = directory.to_owned();
                return Err(PlanError::Look { path, why });
            }
        };
        self.visit(names.len())?;
        Ok(names)
    }
}
