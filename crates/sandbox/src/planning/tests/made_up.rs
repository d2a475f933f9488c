//! A tree in memory.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::super::{Kind, View};
use crate::Identity;

/// What is where. Everything else is absent.
#[derive(Clone, Debug, Default)]
pub(super) struct MadeUp {
    nodes: BTreeMap<PathBuf, Kind>,
    /// Nobody may look below these.
    closed: Vec<PathBuf>,
    /// Nobody may list these.
    unlisted: Vec<PathBuf>,
    /// These go just after they were looked at.
    going: Vec<PathBuf>,
    /// These are our own.
    ours: Vec<PathBuf>,
    clock: Clock,
}

/// A time that goes on with each look at it.
#[derive(Clone, Debug)]
struct Clock {
    start: Instant,
    looks: Cell<u32>,
    tick: Duration,
}

impl Default for Clock {
    fn default() -> Self {
        Clock {
            start: Instant::now(),
            looks: Cell::default(),
            tick: Duration::ZERO,
        }
    }
}

impl MadeUp {
    /// One thing a word: `/a/` is a directory, `/a` a file, `/a>/b` a link. Directories above them
    /// come with them.
    pub(super) fn new(words: &str) -> Self {
        let mut tree = MadeUp::default();
        tree.nodes.insert("/".into(), Kind::Directory);
        for word in words.split_whitespace() {
            let (path, kind) = match (word.split_once('>'), word.strip_suffix('/')) {
                (Some((path, target)), _) => (path, Kind::Link(target.into())),
                (None, Some(path)) => (path, Kind::Directory),
                (None, None) => (word, Kind::File),
            };
            let path = Path::new(path);
            for above in path.ancestors().skip(1) {
                let above = above.to_owned();
                tree.nodes.entry(above).or_insert(Kind::Directory);
            }
            tree.nodes.insert(path.to_owned(), kind);
        }
        tree
    }

    pub(super) fn closed(mut self, path: &str) -> Self {
        self.closed.push(path.into());
        self
    }

    pub(super) fn unlisted(mut self, path: &str) -> Self {
        self.unlisted.push(path.into());
        self
    }

    pub(super) fn going(mut self, path: &str) -> Self {
        self.going.push(path.into());
        self
    }

    pub(super) fn ours(mut self, path: &str) -> Self {
        self.ours.push(path.into());
        self
    }

    /// Where looking at one thing takes so long.
    pub(super) fn slow(mut self, tick: Duration) -> Self {
        self.clock.tick = tick;
        self
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.nodes.keys().map(PathBuf::as_path)
    }

    fn check(&self, path: &Path) -> io::Result<()> {
        if self.closed.iter().any(|closed| path.starts_with(closed)) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }
}

impl View for MadeUp {
    fn look(&self, path: &Path) -> io::Result<Kind> {
        if let Some(parent) = path.parent() {
            self.check(parent)?;
        }
        Ok(self.nodes.get(path).cloned().unwrap_or(Kind::Absent))
    }

    fn identify(&self, path: &Path) -> io::Result<Option<Identity>> {
        match self.going.iter().any(|going| going == path) {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(None),
        }
    }

    fn list(&self, directory: &Path, at_most: usize) -> io::Result<Vec<(OsString, bool)>> {
        match self.unlisted.iter().any(|path| path == directory) {
            true => return Err(io::ErrorKind::PermissionDenied.into()),
            false => self.check(directory)?,
        }
        if self.nodes.get(directory) != Some(&Kind::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = self
            .nodes
            .iter()
            .filter(|(path, _)| path.parent() == Some(directory));
        let named = inside.filter_map(|(path, kind)| {
            let name = path.file_name()?.to_owned();
            Some((name, *kind == Kind::Directory))
        });
        Ok(named.take(at_most).collect())
    }

    fn is_ours(&self, directory: &Path) -> bool {
        self.ours.iter().any(|path| path == directory)
    }

    fn now(&self) -> Instant {
        let looks = self.clock.looks.get();
        self.clock.looks.set(looks + 1);
        self.clock.start + self.clock.tick * looks
    }
}
