//! Removes files, symbolic links and directories.
//!
//! While a tree is removed, only one directory is open at a time, whatever the depth. Every step goes
//! from an open directory to an entry that is no symbolic link, or back to the parent. A directory
//! that is replaced by a link meanwhile is not followed; the link is removed. If a directory is moved
//! meanwhile, `..` leads to another parent, so the parent is compared with the directory that the walk
//! came from.

use std::ffi::{OsStr, OsString};

use outpost_types::{FsRemoveParams, Symlinks};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::directory_entries::{HiddenNames, names_in};
use crate::resolve::{Identity, file_type, if_exists, open_in};
use crate::{Files, FilesError};

impl Files {
    /// Removes a file, a symbolic link (not its target) or a directory.
    pub(crate) fn remove(&self, op: &FsRemoveParams) -> Result<(), FilesError> {
        match self.remove_existing(op) {
            Err(error) if op.force && error.is(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    fn remove_existing(&self, op: &FsRemoveParams) -> Result<(), FilesError> {
        let (parent, name) = self.open_parent(op.path.as_path(), op.symlinks)?;
        let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match file_type(&stat) {
            FileType::Symlink if op.symlinks == Symlinks::Reject => Err(FilesError::SymbolicLink),
            FileType::Directory if op.recursive => remove_tree(parent, name),
            FileType::Directory => Ok(unlinkat(&parent, name, AtFlags::REMOVEDIR)?),
            _ => Ok(unlinkat(&parent, name, AtFlags::empty())?),
        }
    }
}

/// The number of names that are read at once.
const BATCH: usize = 4096;

const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// How often new names may appear in a directory while it is emptied.
const MAX_REFILLS: u32 = 64;

/// How many full batches of names one directory may have.
const MAX_FULL_BATCHES: u32 = 1 << 22;

/// A parent of the directory that is being emptied.
struct Parent {
    identity: Identity,
    progress: Progress,
    /// The entry that the walk went into.
    name: OsString,
}

/// The progress in one directory. Bounds the work if another process keeps creating entries.
#[derive(Debug, Default)]
struct Progress {
    /// The number of names that should be left, if known.
    left: Option<usize>,
    refills: u32,
    full_batches: u32,
}

impl Progress {
    /// Records a batch of `count` names. Fails if there were too many.
    fn found(&mut self, count: usize) -> Result<(), FilesError> {
        if count >= BATCH {
            self.full_batches += 1;
            self.left = None;
        } else {
            self.refills += u32::from(self.left.is_some_and(|left| count > left));
            self.left = Some(count);
        }
        if self.refills > MAX_REFILLS || self.full_batches > MAX_FULL_BATCHES {
            return Err(Errno::NOTEMPTY.into());
        }
        Ok(())
    }

    /// Records that one name is removed, or will be.
    fn removed_one(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }
}

/// The outcome of emptying a directory.
enum Emptied {
    /// No entry is left.
    All,
    /// This entry is a directory, which must be emptied first.
    UpTo(OsString),
}

/// Removes the directory `name` in `parent`. It may have become a file meanwhile.
fn remove_tree(parent: OwnedFd, name: &OsStr) -> Result<(), FilesError> {
    let mut parents = vec![Parent {
        identity: Identity::of(&parent)?,
        progress: Progress::default(),
        name: name.to_owned(),
    }];
    let Some(mut directory) = open_to_empty(&parent, name)? else {
        return Ok(());
    };
    let mut progress = Progress::default();
    loop {
        match empty(&directory, &mut progress)? {
            Emptied::UpTo(name) => {
                let identity = Identity::of(&directory)?;
                if let Some(child) = open_to_empty(&directory, &name)? {
                    parents.push(Parent {
                        identity,
                        progress: std::mem::take(&mut progress),
                        name,
                    });
                    directory = child;
                }
            }
            Emptied::All => {
                let Some(last) = parents.pop() else {
                    return Ok(());
                };
                // `..` of the first directory may not lead to `parent`, for example at a mount point,
                // but `parent` is still open.
                directory = if parents.is_empty() {
                    parent.try_clone()?
                } else {
                    open_parent(&directory, last.identity)?
                };
                progress = last.progress;
                // Another process may have removed it.
                if_exists(unlinkat(&directory, &last.name, AtFlags::REMOVEDIR))?;
                if parents.is_empty() {
                    return Ok(());
                }
            }
        }
    }
}

/// Opens a directory in order to empty it. An entry that is no directory any more is removed instead.
fn open_to_empty(parent: &OwnedFd, name: &OsStr) -> Result<Option<OwnedFd>, FilesError> {
    match open_in(parent, name, READ, Mode::empty()) {
        Ok(directory) => Ok(Some(directory)),
        Err(FilesError::SymbolicLink) => unlink(parent, name),
        Err(error) if error.is(Errno::NOTDIR) => unlink(parent, name),
        Err(error) if error.is(Errno::NOENT) => Ok(None),
        // An unreadable directory can be removed if it is empty.
        Err(error) if error.is(Errno::ACCESS) => match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(None),
            Err(_) => Err(error),
        },
        Err(error) => Err(error),
    }
}

fn unlink(parent: &OwnedFd, name: &OsStr) -> Result<Option<OwnedFd>, FilesError> {
    if_exists(unlinkat(parent, name, AtFlags::empty()))?;
    Ok(None)
}

/// Removes the entries of a directory, up to the first subdirectory.
fn empty(directory: impl AsFd, progress: &mut Progress) -> Result<Emptied, FilesError> {
    let directory = directory.as_fd();
    loop {
        let names = names_in(directory, BATCH, &HiddenNames::default())?;
        if names.is_empty() {
            return Ok(Emptied::All);
        }
        progress.found(names.len())?;
        for name in names {
            progress.removed_one();
            if name.kind == FileType::Directory {
                return Ok(Emptied::UpTo(name.text));
            }
            match unlinkat(directory, &name.text, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                // It was replaced by a directory.
                Err(Errno::ISDIR) => return Ok(Emptied::UpTo(name.text)),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Opens the parent. Fails if it is not the expected directory.
fn open_parent(directory: &OwnedFd, expected: Identity) -> Result<OwnedFd, FilesError> {
    let parent = openat(directory, c"..", READ | OFlags::CLOEXEC, Mode::empty())?;
    if Identity::of(&parent)? != expected {
        return Err(FilesError::Moved);
    }
    Ok(parent)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn shrinking_directory_is_no_refill() {
        let mut progress = Progress::default();
        for count in (1..1000).rev() {
            progress.found(count).unwrap();
            progress.removed_one();
        }
        // A directory with more names than one batch returns full batches for a while.
        for _ in 0..1000 {
            progress.found(BATCH).unwrap();
            progress.removed_one();
        }
        progress.found(BATCH - 1).unwrap();
    }

    #[test]
    fn endless_refills_are_given_up() {
        let mut progress = Progress::default();
        let rounds = (0..1000).take_while(|_| {
            let found = progress.found(1);
            progress.removed_one();
            found.is_ok()
        });
        assert_eq!(rounds.count(), MAX_REFILLS as usize + 1);
        let mut progress = Progress::default();
        let mut rounds = 0..=MAX_FULL_BATCHES;
        assert!(!rounds.all(|_| progress.found(BATCH).is_ok()));
    }

    #[test]
    fn removal_ends_while_entries_keep_appearing() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("busy");
        std::fs::create_dir(&directory).unwrap();
        let ended = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            for writer in 0..2 {
                let (directory, ended) = (&directory, &ended);
                scope.spawn(move || {
                    for number in 0_u64.. {
                        let _ = std::fs::write(directory.join(format!("{writer}-{number}")), "");
                        if ended.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            let parent = std::fs::File::open(folder.path()).unwrap();
            let outcome = remove_tree(parent.into(), OsStr::new("busy"));
            ended.store(true, Ordering::Relaxed);
            outcome
        });
        // It succeeds if the directory happens to be empty for a moment.
        assert!(outcome.is_ok() || outcome.unwrap_err().is(Errno::NOTEMPTY));
    }
}
