//! Directories on the host that stand where nothing was, for as long as a confined process needs
//! something to mount over.
//!
//! A mount needs a place, and where a path must stay absent there is none. So an empty directory is
//! put there and taken away again. It carries a time of change that nobody else's has, by which it
//! is known, also to another server and to one that comes after a crash; whoever puts something
//! into it changes that time, and then it isn't one any more. Everyone who needs it holds a lock on
//! it, and the last to let go removes it: while it is mounted over somewhere, removing it would
//! take that mount away.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

/// A second in 2012 when nobody made a directory.
const MARK: i64 = 0x4f55_5450;

/// How often something may come in between before it is given up.
const ATTEMPTS: usize = 64;

/// Whether this is the metadata of a placeholder.
pub(super) fn is_one(metadata: &Metadata) -> bool {
    metadata.is_dir() && metadata.mtime() == MARK && metadata.mtime_nsec() == 0
}

/// Why a path can't be kept absent.
#[derive(Debug, thiserror::Error)]
pub enum PlaceholderError {
    /// It isn't absent any more.
    #[error("something has appeared at {0:?} meanwhile")]
    Appeared(PathBuf),
    /// The system refused.
    #[error("cannot hold the place of {path:?}: {source}")]
    Os {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The placeholders that this program holds; clones name the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Placeholders(Arc<Mutex<HashMap<PathBuf, Held>>>);

#[derive(Debug)]
struct Held {
    users: usize,
    /// With a shared lock, where there are such.
    directory: OwnedFd,
}

/// Some of them, until this is dropped.
#[derive(Debug)]
pub(super) struct Holding {
    all: Placeholders,
    paths: Vec<PathBuf>,
}

impl Placeholders {
    pub(super) fn hold(&self, paths: &[PathBuf]) -> Result<Holding, PlaceholderError> {
        let mut holding = Holding {
            all: self.clone(),
            paths: Vec::new(),
        };
        for path in paths {
            self.hold_one(path)?;
            holding.paths.push(path.clone());
        }
        Ok(holding)
    }

    fn hold_one(&self, path: &Path) -> Result<(), PlaceholderError> {
        let mut all = self.lock();
        if let Some(held) = all.get_mut(path) {
            if is_at(&held.directory, path) {
                held.users += 1;
                return Ok(());
            }
            return Err(PlaceholderError::Appeared(path.to_owned()));
        }
        let directory = make(path)?;
        let held = Held {
            users: 1,
            directory,
        };
        all.insert(path.to_owned(), held);
        Ok(())
    }

    fn release(&self, path: &Path) {
        let mut all = self.lock();
        let Some(held) = all.get_mut(path) else {
            return;
        };
        held.users -= 1;
        if held.users > 0 {
            return;
        }
        if let Some(held) = all.remove(path) {
            remove(&held.directory, path);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        for path in &self.paths {
            self.all.release(path);
        }
    }
}

/// Makes one or joins those who hold it.
fn make(path: &Path) -> Result<OwnedFd, PlaceholderError> {
    let refused = |errno: Errno| PlaceholderError::Os {
        path: path.to_owned(),
        source: errno.into(),
    };
    for _ in 0..ATTEMPTS {
        let made = match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(refused(errno)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => continue,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(PlaceholderError::Appeared(path.to_owned()));
            }
            Err(errno) => return Err(refused(errno)),
        };
        if made {
            mark(&directory).map_err(refused)?;
        }
        if share(&directory) && is_at(&directory, path) {
            return match path.symlink_metadata() {
                Ok(metadata) if is_one(&metadata) => Ok(directory),
                _ => Err(PlaceholderError::Appeared(path.to_owned())),
            };
        }
        // Somebody is just removing it.
        std::thread::yield_now();
    }
    Err(refused(Errno::BUSY))
}

fn mark(directory: &OwnedFd) -> Result<(), Errno> {
    let time = Timespec {
        tv_sec: MARK,
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::futimens(directory, &times)
}

/// False while somebody is removing it. Where there are no locks, this program's own count is all
/// there is.
fn share(directory: &OwnedFd) -> bool {
    let shared = FlockOperation::NonBlockingLockShared;
    rustix::fs::flock(directory, shared) != Err(Errno::WOULDBLOCK)
}

/// Removes it if nobody else holds it and nobody has filled it.
fn remove(directory: &OwnedFd, path: &Path) {
    let alone = FlockOperation::NonBlockingLockExclusive;
    if rustix::fs::flock(directory, alone) == Err(Errno::WOULDBLOCK) || !is_at(directory, path) {
        return;
    }
    if path.symlink_metadata().is_ok_and(|found| is_one(&found)) {
        // One that isn't empty after all stays.
        let _ = rustix::fs::unlinkat(rustix::fs::CWD, path, AtFlags::REMOVEDIR);
    }
}

/// Whether that directory is still what the path leads to.
fn is_at(directory: &OwnedFd, path: &Path) -> bool {
    let (Ok(held), Ok(found)) = (rustix::fs::fstat(directory), rustix::fs::lstat(path)) else {
        return false;
    };
    held.st_dev == found.st_dev && held.st_ino == found.st_ino
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_until_the_last_one_lets_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(".git");
        let (one, other) = (Placeholders::default(), Placeholders::default());
        let first = one.hold(std::slice::from_ref(&path)).expect("held");
        let second = one.hold(std::slice::from_ref(&path)).expect("held");
        // As another server would.
        let third = other.hold(std::slice::from_ref(&path)).expect("held");
        assert!(is_one(&path.metadata().expect("it is there")));
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(path.exists());
        drop(third);
        assert!(!path.exists());
    }

    #[test]
    fn what_somebody_has_put_into_it_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(".git");
        let held = Placeholders::default().hold(std::slice::from_ref(&path));
        std::fs::write(path.join("HEAD"), "x").expect("it can be filled");
        std::fs::remove_file(path.join("HEAD")).expect("and emptied");
        drop(held);
        assert!(path.exists(), "it belongs to whoever filled it");
    }

    #[test]
    fn one_that_was_left_behind_is_taken_over_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(".git");
        let directory = make(&path).expect("it is made");
        drop(directory);
        assert!(path.exists(), "as if the server had been killed");
        let held = Placeholders::default().hold(std::slice::from_ref(&path));
        drop(held.expect("held"));
        assert!(!path.exists());
    }

    #[test]
    fn what_is_somebody_elses_is_not_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(".git");
        std::fs::create_dir(&path).expect("a directory");
        let refused = Placeholders::default().hold(std::slice::from_ref(&path));
        assert!(matches!(refused, Err(PlaceholderError::Appeared(_))));
        assert!(path.exists());
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("a file");
        let refused = Placeholders::default().hold(std::slice::from_ref(&file));
        assert!(matches!(refused, Err(PlaceholderError::Appeared(_))));
    }

    #[test]
    fn all_or_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = [folder.path().join("a"), folder.path().join("b/c")];
        let refused = Placeholders::default().hold(&paths);
        assert!(matches!(refused, Err(PlaceholderError::Os { .. })));
        assert!(!paths[0].exists());
    }
}
