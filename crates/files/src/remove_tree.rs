//! Removing a directory with everything below it.
//!
//! Only one directory is open at a time, however deep the tree is, and every step is one from an open
//! directory to a name in it that is no link, or back to the directory above. Somebody who puts links
//! in the place of directories meanwhile loses the links. Somebody who moves a directory meanwhile
//! would lead us somewhere else on the way back, so that place is compared with where we came from.

use std::ffi::{OsStr, OsString};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

use crate::FilesError;
use crate::gaps::Gaps;
use crate::identity::Identity;
use crate::names::names_in;
use crate::resolve::open_in;

/// How many names are read at once: what is removed needn't be known as a whole.
const BATCH: usize = 4096;

const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// How often names may appear in a directory while it is cleared.
const SURPRISES: u32 = 64;

/// How often there may be more names in a directory than are read at once.
const FULL: u32 = 1 << 22;

/// A directory on the way down.
struct Above {
    /// Which one it is.
    identity: Identity,
    /// How far it has been cleared.
    progress: Progress,
    /// What we went into there.
    name: OsString,
}

/// How it goes with one directory. Whoever keeps making names there could keep us forever.
#[derive(Debug, Default)]
struct Progress {
    /// How many names are left, as far as that is known.
    left: Option<usize>,
    surprises: u32,
    full: u32,
}

impl Progress {
    /// So many names were found.
    fn found(&mut self, count: usize) -> Result<(), FilesError> {
        if count >= BATCH {
            self.full += 1;
            self.left = None;
        } else {
            self.surprises += u32::from(self.left.is_some_and(|left| count > left));
            self.left = Some(count);
        }
        match self.surprises > SURPRISES || self.full > FULL {
            true => Err(Errno::NOTEMPTY.into()),
            false => Ok(()),
        }
    }

    /// One of them is gone, or will be.
    fn one_less(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }
}

/// What happened to the names in a directory.
enum Cleared {
    /// There is none left.
    All,
    /// This one is a directory.
    Up(OsString),
}

/// Removes the directory `name` in `parent`, which may also be a file by now.
pub(crate) fn remove_tree(parent: OwnedFd, name: &OsStr) -> Result<(), FilesError> {
    let mut way = vec![Above {
        identity: Identity::of(&parent)?,
        progress: Progress::default(),
        name: name.to_owned(),
    }];
    let Some(mut here) = enter(&parent, name)? else {
        return Ok(());
    };
    let mut progress = Progress::default();
    loop {
        match clear(&here, &mut progress)? {
            Cleared::Up(name) => {
                let identity = Identity::of(&here)?;
                if let Some(below) = enter(&here, &name)? {
                    way.push(Above {
                        identity,
                        progress: std::mem::take(&mut progress),
                        name,
                    });
                    here = below;
                }
            }
            Cleared::All => {
                let Some(above) = way.pop() else {
                    return Ok(());
                };
                // The first one may be somewhere that has no way back from below, such as where
                // something is mounted; it was never closed.
                here = match way.is_empty() {
                    true => parent.try_clone()?,
                    false => back(&here, above.identity)?,
                };
                progress = above.progress;
                match unlinkat(&here, &above.name, AtFlags::REMOVEDIR) {
                    // Somebody else did.
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(error.into()),
                }
                if way.is_empty() {
                    return Ok(());
                }
            }
        }
    }
}

/// Opens a directory to clear it. What isn't one any more is removed instead.
fn enter(place: &OwnedFd, name: &OsStr) -> Result<Option<OwnedFd>, FilesError> {
    match open_in(place, name, READ, Mode::empty()) {
        Ok(directory) => Ok(Some(directory)),
        Err(FilesError::SymbolicLink) => unlink(place, name),
        Err(error) if error.is(Errno::NOTDIR) => unlink(place, name),
        Err(error) if error.is(Errno::NOENT) => Ok(None),
        // One that can't be read may still be empty.
        Err(error) if error.is(Errno::ACCESS) => match unlinkat(place, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(None),
            Err(_) => Err(error),
        },
        Err(error) => Err(error),
    }
}

fn unlink(place: &OwnedFd, name: &OsStr) -> Result<Option<OwnedFd>, FilesError> {
    match unlinkat(place, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes the names in a directory, up to the first that is a directory itself.
fn clear(directory: impl AsFd, progress: &mut Progress) -> Result<Cleared, FilesError> {
    let directory = directory.as_fd();
    loop {
        let names = names_in(directory, BATCH, &Gaps::default())?;
        if names.is_empty() {
            return Ok(Cleared::All);
        }
        progress.found(names.len())?;
        for name in names {
            progress.one_less();
            if name.kind == FileType::Directory {
                return Ok(Cleared::Up(name.text));
            }
            match unlinkat(directory, &name.text, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                // It has become one.
                Err(Errno::ISDIR) => return Ok(Cleared::Up(name.text)),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The directory above, if it is still the one we came from.
fn back(here: &OwnedFd, expected: Identity) -> Result<OwnedFd, FilesError> {
    let above = openat(here, c"..", READ | OFlags::CLOEXEC, Mode::empty())?;
    match Identity::of(&above)? == expected {
        true => Ok(above),
        false => Err(FilesError::Moved),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn names_that_go_are_no_surprise() {
        let mut progress = Progress::default();
        for count in (1..1000).rev() {
            progress.found(count).unwrap();
            progress.one_less();
        }
        // A directory with more than can be read at once stays full for a while.
        for _ in 0..1000 {
            progress.found(BATCH).unwrap();
            progress.one_less();
        }
        progress.found(BATCH - 1).unwrap();
    }

    #[test]
    fn names_that_keep_coming_are_given_up() {
        let mut progress = Progress::default();
        let rounds = (0..1000).take_while(|_| {
            let found = progress.found(1);
            progress.one_less();
            found.is_ok()
        });
        assert_eq!(rounds.count(), SURPRISES as usize + 1);
        let mut progress = Progress::default();
        let mut rounds = 0..=FULL;
        assert!(!rounds.all(|_| progress.found(BATCH).is_ok()));
    }

    #[test]
    fn it_ends_while_somebody_keeps_making_names() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("busy");
        std::fs::create_dir(&place).unwrap();
        let ended = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            for maker in 0..2 {
                let (place, ended) = (&place, &ended);
                scope.spawn(move || {
                    for number in 0_u64.. {
                        let _ = std::fs::write(place.join(format!("{maker}-{number}")), "");
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
        // It may win, if nothing happens to be there for a moment.
        assert!(outcome.is_ok() || outcome.unwrap_err().is(Errno::NOTEMPTY));
    }
}
