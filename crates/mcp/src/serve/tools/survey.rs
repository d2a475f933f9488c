//! All that is in a directory, as deep as somebody wants to know.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use outpost_client::{EntryKind, FileError, Files, Walk, WalkOptions};
use tokio::time::{Instant, timeout_at};

use super::{
    strays::{Nature, Stray, strays},
    together::together,
};

/// What a place allows a walk at most.
const WALK_DIRECTORIES: u64 = 10_000;
const WALK_ENTRIES: u64 = 50_000;

/// What is to be looked at.
pub(super) struct Survey<'a> {
    pub(super) files: &'a Files,
    /// A directory, and no link to one.
    pub(super) root: &'a Path,
    pub(super) depth: u64,
    /// Whether to look into what begins with a dot.
    pub(super) hidden: bool,
    pub(super) at_once: usize,
    /// When it has taken long enough.
    pub(super) deadline: Instant,
}

/// What was seen, level by level, and by name in each directory.
pub(super) struct View {
    pub(super) sights: Vec<Sight>,
    /// Whether there was too much, or it took too long.
    pub(super) incomplete: bool,
    /// How many directories could not be looked into.
    pub(super) unreadable: u64,
}

/// One thing that was seen.
pub(super) struct Sight {
    /// Relative to the root.
    pub(super) name: String,
    pub(super) seen: Seen,
}

/// What is known of it.
pub(super) enum Seen {
    As(Nature),
    /// It has yet to be looked at, which is only worth it if it is shown.
    Unlooked(Stray),
}

impl Survey<'_> {
    /// Looks at everything: a walk tells of files and directories, and each
    /// directory by itself of the rest.
    pub(super) async fn take(&self) -> Result<View, FileError> {
        let options = WalkOptions {
            max_depth: self.depth - 1,
            max_directories: WALK_DIRECTORIES,
            max_entries: WALK_ENTRIES,
            follow_directory_symlinks: false,
            prune_hidden_directories: !self.hidden,
        };
        let walk = self.files.walk(self.root, options).await?;
        let directories = self.entered(&walk);
        let mut view = View {
            sights: Vec::new(),
            incomplete: walk.truncated,
            unreadable: walk.errors.len() as u64,
        };
        let mut known = HashSet::new();
        for entry in walk.entries {
            let path = entry.path.into_path();
            let nature = match entry.kind {
                EntryKind::Directory => Nature::Directory,
                EntryKind::File => Nature::File,
            };
            view.sights.push(self.sight(&path, Seen::As(nature)));
            known.insert(path);
        }
        // Of what a walk had no room for nobody can tell that it was left out.
        if !view.incomplete {
            let adding = self.add_strays(&mut view, &directories, Arc::new(known));
            match timeout_at(self.deadline, adding).await {
                Ok(added) => added?,
                Err(_) => view.incomplete = true,
            }
        }
        view.sights
            .sort_by_cached_key(|sight| (depth(&sight.name), PathBuf::from(&sight.name)));
        Ok(view)
    }

    /// Adds what the walk has left out of the directories it has looked into.
    async fn add_strays(
        &self,
        view: &mut View,
        directories: &[PathBuf],
        known: Arc<HashSet<PathBuf>>,
    ) -> Result<(), FileError> {
        for some in directories.chunks(self.at_once) {
            let late = Instant::now() >= self.deadline;
            if late || view.sights.len() as u64 >= WALK_ENTRIES {
                view.incomplete = true;
                return Ok(());
            }
            let found = together(some.iter().cloned(), self.at_once, |directory| {
                let (files, known) = (self.files.clone(), Arc::clone(&known));
                async move { strays(&files, &directory, &known).await }
            });
            for strays in found.await {
                match strays {
                    Ok(strays) => view.sights.extend(strays.into_iter().map(|stray| {
                        let path = stray.path.clone();
                        self.sight(&path, Seen::Unlooked(stray))
                    })),
                    Err(error) if error.place().is_some() => return Err(error),
                    Err(_) => view.unreadable += 1,
                }
            }
        }
        Ok(())
    }

    /// The directories that a walk has looked into.
    fn entered(&self, walk: &Walk) -> Vec<PathBuf> {
        let closed: HashSet<PathBuf> = walk
            .errors
            .iter()
            .map(|error| error.path.clone().into_path())
            .collect();
        let below = walk
            .entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Directory)
            .map(|entry| entry.path.clone().into_path())
            .filter(|path| depth(&self.name(path)) < self.depth)
            .filter(|path| self.hidden || !is_hidden(path));
        [self.root.to_owned()]
            .into_iter()
            .chain(below)
            .filter(|path| !closed.contains(path))
            .collect()
    }

    fn name(&self, path: &Path) -> String {
        let name = path.strip_prefix(self.root).unwrap_or(path);
        name.display().to_string()
    }

    fn sight(&self, path: &Path, seen: Seen) -> Sight {
        let name = self.name(path);
        Sight { name, seen }
    }
}

/// How deep something is below the root.
fn depth(name: &str) -> u64 {
    Path::new(name).components().count() as u64
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}
