//! A file system in memory.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use super::super::{FileSystemView, LinkCreator, PathKind};
use crate::Identity;

/// Files by path. Other paths are absent.
#[derive(Clone, Debug, Default)]
pub(super) struct FakeFileSystem {
    nodes: BTreeMap<PathBuf, PathKind>,
    /// Directories that can't be entered.
    closed: Vec<PathBuf>,
    /// Directories that can't be listed.
    unlisted: Vec<PathBuf>,
    /// Paths that are removed after they were looked at.
    vanishing: Vec<PathBuf>,
    /// Directories that the server's user owns.
    ours: Vec<PathBuf>,
    /// Links that another user created.
    foreign: Vec<PathBuf>,
    /// Paths that were changed when the epoch began, unlike all others, which were changed now.
    old: Vec<PathBuf>,
    clock: Clock,
}

/// A clock that advances with each reading.
#[derive(Clone, Debug)]
struct Clock {
    start: Instant,
    readings: Cell<u32>,
    tick: Duration,
}

impl Default for Clock {
    fn default() -> Self {
        Clock {
            start: Instant::now(),
            readings: Cell::default(),
            tick: Duration::ZERO,
        }
    }
}

impl FakeFileSystem {
    /// Parses paths separated by spaces: `/a/` is a directory, `/a` a file, `/a>/b` a symbolic link.
    /// Parent directories are created.
    pub(super) fn new(paths: &str) -> Self {
        let mut tree = FakeFileSystem::default();
        tree.nodes.insert("/".into(), PathKind::Directory);
        for word in paths.split_whitespace() {
            let (path, kind) = match (word.split_once('>'), word.strip_suffix('/')) {
                (Some((path, target)), _) => (path, PathKind::Link(target.into())),
                (None, Some(path)) => (path, PathKind::Directory),
                (None, None) => (word, PathKind::File),
            };
            let path = Path::new(path);
            for above in path.ancestors().skip(1) {
                let above = above.to_owned();
                tree.nodes.entry(above).or_insert(PathKind::Directory);
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

    pub(super) fn vanishing(mut self, path: &str) -> Self {
        self.vanishing.push(path.into());
        self
    }

    pub(super) fn foreign(mut self, link: &str) -> Self {
        self.foreign.push(link.into());
        self
    }

    pub(super) fn old(mut self, paths: &[&str]) -> Self {
        self.old.extend(paths.iter().map(PathBuf::from));
        self
    }

    pub(super) fn ours(mut self, path: &str) -> Self {
        self.ours.push(path.into());
        self
    }

    /// Advances the clock by `tick` with each reading.
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

impl FileSystemView for FakeFileSystem {
    fn look(&self, path: &Path) -> io::Result<PathKind> {
        if let Some(parent) = path.parent() {
            self.check(parent)?;
        }
        Ok(self.nodes.get(path).cloned().unwrap_or(PathKind::Absent))
    }

    fn identify(&self, path: &Path) -> io::Result<Option<Identity>> {
        if self.vanishing.iter().any(|vanishing| vanishing == path) {
            Err(io::ErrorKind::NotFound.into())
        } else {
            Ok(None)
        }
    }

    fn list(&self, directory: &Path, at_most: usize) -> io::Result<Vec<(OsString, bool)>> {
        if self.unlisted.iter().any(|path| path == directory) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.check(directory)?;
        if self.nodes.get(directory) != Some(&PathKind::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = self
            .nodes
            .iter()
            .filter(|(path, _)| path.parent() == Some(directory));
        let named = inside.filter_map(|(path, kind)| {
            let name = path.file_name()?.to_owned();
            Some((name, *kind == PathKind::Directory))
        });
        Ok(named.take(at_most).collect())
    }

    fn is_ours(&self, directory: &Path) -> bool {
        self.ours.iter().any(|path| path == directory)
    }

    fn link_creator(&self, link: &Path) -> io::Result<LinkCreator> {
        let is_foreign = self.foreign.iter().any(|foreign| foreign == link);
        Ok(match (is_foreign, link.starts_with("/usr")) {
            (true, _) => LinkCreator::OtherUser,
            (false, true) => LinkCreator::Owner,
            (false, false) => LinkCreator::OurUser,
        })
    }

    fn change_time(&self, path: &Path) -> io::Result<SystemTime> {
        Ok(if self.old.iter().any(|old| old == path) {
            SystemTime::UNIX_EPOCH
        } else {
            SystemTime::now()
        })
    }

    fn now(&self) -> Instant {
        let readings = self.clock.readings.get();
        self.clock.readings.set(readings + 1);
        self.clock.start + self.clock.tick * readings
    }
}
