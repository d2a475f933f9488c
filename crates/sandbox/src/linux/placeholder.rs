//! Directories on the host that stand where nothing was, for as long as a confined process needs
//! something to mount over.
//!
//! A mount needs a place, and where a path must stay absent there is none. So an empty directory is
//! put there and taken away again. It carries a time of change that nobody else's has, by which it
//! is known, also to another server of the same user and to one that comes after a crash; whoever
//! puts something into it changes that time, and then it isn't one any more. A confined process can
//! give any directory that time. So one is only taken for a placeholder while it is empty and our
//! own, and then nothing is lost by mounting over it or by removing it.
//!
//! Everyone who needs it holds a lock on it, and the last to let go removes it: while it is mounted
//! over somewhere, removing it would take that mount away. Bubblewrap's first process holds those
//! locks as well, so that they last as long as anything lives inside, also when our server is killed. What it is in is opened once, through no
//! link, and everything is done from there: the path may lead elsewhere by the time it is removed.
//!
//! Somebody else may be granted what is kept from one process, such as `.git`, and then there are
//! placeholders in a placeholder. It gets its mark again each time, and who holds those in it holds it
//! as well, so that it goes last.

use std::collections::HashMap;
use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::ajar::Ajar;
use super::place;

/// A second in 2012 when nobody made a directory.
const MARK: i64 = 0x4f55_5450;

/// How often something may come in between before it is given up.
const ATTEMPTS: usize = 64;

const OPENED: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Whether there is a placeholder at a path.
#[must_use]
pub fn is_one_at(path: &Path) -> bool {
    let Some((parent, name)) = path.parent().zip(path.file_name()) else {
        return false;
    };
    let opened = place::follow(parent).map_err(Errno::from);
    let opened = opened.and_then(|parent| rustix::fs::openat(parent, name, OPENED, Mode::empty()));
    opened.is_ok_and(|directory| is_one(&directory) == Ok(true))
}

fn is_one(directory: &OwnedFd) -> Result<bool, Errno> {
    Ok(is_marked(directory)? && holds_nothing(directory)?)
}

fn is_marked(directory: &OwnedFd) -> Result<bool, Errno> {
    let own = rustix::process::geteuid().as_raw();
    let found = rustix::fs::fstat(directory)?;
    Ok(found.st_uid == own && (found.st_mtime, found.st_mtime_nsec) == (MARK, 0))
}

/// Whether nothing is in it but others like it, which are empty.
fn holds_nothing(directory: &OwnedFd) -> Result<bool, Errno> {
    all_in(directory, |name| {
        match rustix::fs::openat(directory, name, OPENED, Mode::empty()) {
            Ok(inner) => Ok(is_marked(&inner)? && all_in(&inner, |_| Ok(false))?),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(false),
            Err(errno) => Err(errno),
        }
    })
}

/// Whether it is so of every name in a directory.
fn all_in(
    directory: &OwnedFd,
    is_so: impl Fn(&CStr) -> Result<bool, Errno>,
) -> Result<bool, Errno> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") && !is_so(name)? {
            return Ok(false);
        }
    }
    Ok(true)
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

impl PlaceholderError {
    /// Whether it may be otherwise a moment later.
    pub(crate) fn is_of_the_moment(&self) -> bool {
        match self {
            PlaceholderError::Appeared(_) => true,
            PlaceholderError::Os { source, .. } => source.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// The placeholders that this program holds; clones name the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Placeholders(Arc<Mutex<HashMap<PathBuf, Weak<Held>>>>);

/// One of them. The last who drops it has all of them locked.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    /// What it is in, and what it is called there.
    parent: OwnedFd,
    name: OsString,
    /// With a shared lock, where there are such.
    directory: OwnedFd,
    /// The one that it is in, if it is in one of ours.
    within: Option<Arc<Held>>,
}

/// Some of them, until this is dropped.
#[derive(Debug)]
pub(super) struct Holding {
    all: Placeholders,
    held: Vec<Arc<Held>>,
}

impl Placeholders {
    pub(super) fn hold(&self, paths: &[PathBuf]) -> Result<Holding, PlaceholderError> {
        let mut holding = Holding {
            all: self.clone(),
            held: Vec::new(),
        };
        for path in paths {
            holding.held.push(self.hold_one(path)?);
        }
        Ok(holding)
    }

    /// Where they are.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.lock().keys().cloned().collect()
    }

    fn hold_one(&self, path: &Path) -> Result<Arc<Held>, PlaceholderError> {
        let mut all = self.lock();
        let held = all.get(path).and_then(Weak::upgrade);
        // Somebody may have removed it or moved it away. Whoever holds that one goes on doing so.
        if let Some(held) = held.filter(|held| held.is_there()) {
            return Ok(held);
        }
        // Not what merely looks like one: somebody's own directory isn't to be removed.
        let within = path.parent().and_then(|parent| all.get(parent));
        let within = within.and_then(Weak::upgrade);
        let mut held = make(path)?;
        held.within = within.filter(|within| within.is_there());
        if let Some(within) = &held.within {
            within.mark_again();
        }
        let held = Arc::new(held);
        all.insert(path.to_owned(), Arc::downgrade(&held));
        Ok(held)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Weak<Held>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is left of placeholders that are gone: the system frees them when this is dropped, which takes
/// longer than removing them.
#[derive(Debug)]
pub struct Remains {
    _removed: Vec<Held>,
}

impl Holding {
    /// What is locked, each with a number that nobody else has for as long as this is held.
    pub(super) fn locked(&self) -> Vec<(usize, BorrowedFd<'_>)> {
        let mut locked = Vec::new();
        let mut open: Vec<_> = self.held.iter().collect();
        while let Some(held) = open.pop() {
            locked.push((Arc::as_ptr(held).addr(), held.directory.as_fd()));
            open.extend(&held.within);
        }
        locked
    }

    /// Lets go of all of them. Whoever was the last to hold one has removed it when this returns.
    pub(super) fn let_go(mut self) -> Remains {
        self.remove()
    }

    fn remove(&mut self) -> Remains {
        let mut all = self.all.lock();
        let mut removed = Vec::new();
        let mut open: Vec<_> = self.held.drain(..).collect();
        while let Some(held) = open.pop() {
            let Some(mut last) = Arc::into_inner(held) else {
                continue;
            };
            // There may be another one at its path by now.
            if all
                .get(&last.path)
                .is_some_and(|found| found.strong_count() == 0)
            {
                all.remove(&last.path);
            }
            let within = last.within.take();
            last.remove();
            removed.push(last);
            if let Some(within) = within {
                within.mark_again();
                open.push(within);
            }
        }
        Remains { _removed: removed }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Held {
    /// Whether it is still what its path leads to.
    fn is_there(&self) -> bool {
        let parent = self.path.parent().map(place::follow);
        let parent = parent.and_then(Result::ok);
        parent.is_some_and(|parent| is_at(&self.directory, &parent, &self.name))
    }

    /// After something of ours was put into it or taken out, unless there is more.
    fn mark_again(&self) {
        if holds_nothing(&self.directory) == Ok(true) {
            // Without its mark it is somebody's directory, and stays.
            let _ = mark(&self.directory);
        }
    }

    /// Removes it if nobody else holds it and nobody has filled it.
    fn remove(&self) {
        let _ajar = Ajar::new(&self.parent);
        let alone = FlockOperation::NonBlockingLockExclusive;
        let shared = rustix::fs::flock(&self.directory, alone) == Err(Errno::WOULDBLOCK);
        let is_at = is_at(&self.directory, &self.parent, &self.name);
        if shared || !is_at || is_one(&self.directory) != Ok(true) {
            return;
        }
        // One that isn't empty after all stays.
        let _ = rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR);
    }
}

/// Makes one or joins those who hold it.
fn make(path: &Path) -> Result<Held, PlaceholderError> {
    let refused = |errno: Errno| PlaceholderError::Os {
        path: path.to_owned(),
        source: errno.into(),
    };
    let appeared = || PlaceholderError::Appeared(path.to_owned());
    let (above, name) = path
        .parent()
        .zip(path.file_name())
        .ok_or_else(|| refused(Errno::INVAL))?;
    let parent = place::follow(above).map_err(|stopped| refused(stopped.into()))?;
    for _ in 0..ATTEMPTS {
        put(&parent, name.as_ref()).map_err(refused)?;
        let directory = match rustix::fs::openat(&parent, name, OPENED, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => continue,
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(appeared()),
            Err(errno) => return Err(refused(errno)),
        };
        if share(&directory) && is_at(&directory, &parent, name) {
            if !is_one(&directory).map_err(refused)? {
                return Err(appeared());
            }
            return Ok(Held {
                path: path.to_owned(),
                parent,
                name: name.to_owned(),
                directory,
                within: None,
            });
        }
        // Somebody is just removing it.
        std::thread::yield_now();
    }
    Err(refused(Errno::BUSY))
}

/// Puts one there unless there is something. It has its mark before it has its name: a server that
/// is killed in between would leave something that nobody ever takes for one.
fn put(parent: &OwnedFd, name: &Path) -> Result<(), Errno> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let there = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    if there.is_ok() {
        return Ok(());
    }
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = PathBuf::from(format!(".outpost-{}-{number}", std::process::id()));
    make_marked(parent, &draft)?;
    let named = rustix::fs::renameat_with(parent, &draft, parent, name, RenameFlags::NOREPLACE);
    if named.is_ok() {
        return Ok(());
    }
    let _ = rustix::fs::unlinkat(parent, &draft, AtFlags::REMOVEDIR);
    match named {
        // Not every file system can.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => make_marked(parent, name),
        Err(Errno::EXIST) => Ok(()),
        named => named,
    }
}

fn make_marked(parent: &OwnedFd, name: &Path) -> Result<(), Errno> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
        Err(Errno::EXIST) => return Ok(()),
        made => made?,
    }
    mark(&rustix::fs::openat(parent, name, OPENED, Mode::empty())?)
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

/// Whether that directory is what goes by this name.
fn is_at(directory: &OwnedFd, parent: &OwnedFd, name: impl AsRef<Path>) -> bool {
    let found = rustix::fs::statat(parent, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW);
    let (Ok(held), Ok(found)) = (rustix::fs::fstat(directory), found) else {
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
        assert!(is_one_at(&path));
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
        drop(make(&path).expect("it is made"));
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

    #[test]
    fn a_mark_alone_does_not_make_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        std::fs::create_dir(&path).expect("a directory");
        std::fs::write(path.join("file"), "").expect("a file");
        let opened = rustix::fs::open(&path, OPENED, Mode::empty()).expect("it opens");
        mark(&opened).expect("it is marked");
        assert!(!is_one_at(&path));
        let refused = Placeholders::default().hold(std::slice::from_ref(&path));
        assert!(matches!(refused, Err(PlaceholderError::Appeared(_))));
        if rustix::process::geteuid().is_root() {
            let theirs = folder.path().join("b");
            drop(make(&theirs).expect("it is made"));
            assert!(is_one_at(&theirs));
            std::os::unix::fs::chown(&theirs, Some(65534), None).expect("it changes hands");
            assert!(!is_one_at(&theirs), "it is another user's");
        }
    }

    #[test]
    fn one_that_was_removed_is_made_again_and_each_is_removed_by_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(".git");
        let all = Placeholders::default();
        let first = all.hold(std::slice::from_ref(&path)).expect("held");
        std::fs::remove_dir(&path).expect("somebody removes it");
        let second = all.hold(std::slice::from_ref(&path)).expect("held again");
        drop(first);
        assert!(path.exists(), "it is the other's");
        let third = all.hold(std::slice::from_ref(&path)).expect("joined");
        drop(second);
        assert!(path.exists());
        drop(third);
        assert!(!path.exists());
        assert!(all.paths().is_empty());
    }

    #[test]
    fn it_is_removed_where_it_was_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let (here, moved) = (folder.path().join("here"), folder.path().join("moved"));
        let beside = folder.path().join("beside");
        std::fs::create_dir(&here).expect("a folder");
        std::fs::create_dir_all(beside.join(".git")).expect("folders");
        let held = Placeholders::default().hold(&[here.join(".git")]);
        std::fs::rename(&here, &moved).expect("it moves");
        std::os::unix::fs::symlink(&beside, &here).expect("a link");
        assert!(moved.join(".git").exists());
        drop(held.expect("held"));
        assert!(!moved.join(".git").exists());
        assert!(beside.join(".git").exists());
        let refused = Placeholders::default().hold(&[here.join(".aws")]);
        assert!(matches!(refused, Err(PlaceholderError::Os { .. })));
        assert!(!beside.join(".aws").exists());
    }

    #[test]
    fn one_in_another_goes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let outer = folder.path().join(".git");
        let inner = [outer.join(".aws"), outer.join(".git")];
        let all = Placeholders::default();
        for the_outer_ends_first in [true, false] {
            let first = all.hold(std::slice::from_ref(&outer)).expect("held");
            let second = all.hold(&inner).expect("held");
            // Whoever comes now joins them.
            assert!(is_one_at(&outer));
            let third = all.hold(std::slice::from_ref(&outer)).expect("joined");
            let (one, other) = match the_outer_ends_first {
                true => (first, second),
                false => (second, first),
            };
            drop(one);
            drop(other);
            assert!(is_one_at(&outer), "it is the third one's");
            assert!(!inner[0].exists() && !inner[1].exists());
            drop(third);
            assert!(!outer.exists());
            assert!(all.paths().is_empty());
        }
        // What was put into it stays, and its time with it.
        let first = all.hold(std::slice::from_ref(&outer)).expect("held");
        let second = all.hold(&inner).expect("held");
        std::fs::write(outer.join("HEAD"), "ref").expect("it is written");
        drop((first, second));
        assert!(outer.join("HEAD").exists());
        assert!(!is_marked_at(&outer));
    }

    #[test]
    fn what_only_looks_like_one_is_not_removed_with_what_is_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).expect("a directory");
        let opened = rustix::fs::open(&workspace, OPENED, Mode::empty()).expect("it opens");
        mark(&opened).expect("it is marked");
        drop(Placeholders::default().hold(&[workspace.join(".git")]));
        assert!(workspace.exists());
    }

    fn is_marked_at(path: &Path) -> bool {
        let opened = rustix::fs::open(path, OPENED, Mode::empty()).expect("it opens");
        is_marked(&opened) == Ok(true)
    }

    #[test]
    fn nothing_else_is_left_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(".git");
        let names = || folder.path().read_dir().expect("it is there").count();
        let held = Placeholders::default().hold(std::slice::from_ref(&path));
        assert_eq!(names(), 1);
        drop(held.expect("held"));
        assert_eq!(names(), 0);
    }
}
