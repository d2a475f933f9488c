//! The dynamic loader and the shared libraries of the helper, which a plan may hide.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::{Access, Plan};

/// A shared library of this program.
#[derive(Debug)]
pub(super) struct Library {
    path: PathBuf,
    /// Stays usable when an upgrade replaces the library. `None` if it could not be opened.
    file: Option<OwnedFd>,
}

/// Opens the shared libraries of this program. The dynamic loader is the first.
pub(super) fn open_loaded() -> Vec<Library> {
    let open = |path: PathBuf| {
        let file = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let file = file.ok();
        Library { path, file }
    };
    loaded().into_iter().map(open).collect()
}

fn loaded() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths: Vec<_> = maps
        .lines()
        .filter_map(|line| line.split_once('/'))
        .map(|(_, path)| PathBuf::from(format!("/{path}")))
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.contains(".so"))
        })
        .collect();
    paths.sort_by_key(|path| (!is_loader(path), path.clone()));
    paths.dedup();
    paths
}

fn is_loader(library: &Path) -> bool {
    let name = library.file_name().map(|name| name.as_encoded_bytes());
    name.is_some_and(|name| name.starts_with(b"ld-"))
}

/// Returns descriptors of all of them if the plan hides one, for a loader that can't find them by their paths.
pub(super) fn if_hidden(libraries: &[Library], plan: &Plan) -> io::Result<Vec<OwnedFd>> {
    let is_hidden = |library: &Library| plan.access(&library.path) == Access::Deny;
    if !libraries.iter().any(is_hidden) {
        return Ok(Vec::new());
    }
    let clone = |library: &Library| match &library.file {
        Some(file) => file.try_clone(),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    libraries.iter().map(clone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loader_is_the_first_library() {
        let libraries = loaded();
        let loaders = libraries.iter().filter(|library| is_loader(library));
        assert_eq!(loaders.collect::<Vec<_>>(), [&libraries[0]]);
        assert!(open_loaded().iter().all(|library| library.file.is_some()));
    }
}
