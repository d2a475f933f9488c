//! What patterns match, as of now.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{Bounds, PlanError, View, pattern::Pattern, resolve::resolve};

/// Looks for patterns, within bounds for all of them together.
pub(super) struct Scan<'a> {
    view: &'a dyn View,
    max_depth: usize,
    visited: usize,
    limit: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(view: &'a dyn View, max_depth: Option<usize>, bounds: &Bounds) -> Self {
        Scan {
            view,
            max_depth: max_depth.unwrap_or(usize::MAX),
            visited: 0,
            limit: bounds.visited,
        }
    }

    /// Everything that a pattern matches, links not followed. Directories that are `hidden`, be it
    /// for a match, are not looked into.
    pub(super) fn matches(
        &mut self,
        pattern: &Pattern,
        hidden: impl Fn(&Path, bool) -> bool,
    ) -> Result<Vec<PathBuf>, PlanError> {
        let base = resolve(self.view, &pattern.base)?;
        if pattern.is_plain() {
            return Ok(vec![base.path]);
        }
        let mut found = Vec::new();
        let mut open = vec![(PathBuf::new(), 1_usize)];
        while let Some((directory, depth)) = open.pop() {
            if depth > self.max_depth {
                continue;
            }
            for (name, is_directory) in self.list(&base.path.join(&directory))? {
                let relative = directory.join(name);
                let path = base.path.join(&relative);
                let matched = pattern.matches(&relative);
                if is_directory && pattern.leads_below(&relative) && !hidden(&path, matched) {
                    open.push((relative, depth + 1));
                }
                if matched {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }

    fn list(&mut self, directory: &Path) -> Result<Vec<(std::ffi::OsString, bool)>, PlanError> {
        let names = match self.view.list(directory, self.limit - self.visited + 1) {
            Ok(names) => names,
            // Whoever is confined runs as we do and can't look there either, or it has just gone.
            Err(why)
                if matches!(
                    why.kind(),
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::NotFound
                        | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Vec::new());
            }
            Err(why) => {
                let path = directory.to_owned();
                return Err(PlanError::Look { path, why });
            }
        };
        self.visited += names.len();
        if self.visited > self.limit {
            return Err(PlanError::ManyFiles { limit: self.limit });
        }
        Ok(names)
    }
}
