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
use crate::identity::Identity;
use crate::names::names_in;
use crate::resolve::open_in;

/// How many names are read at once: what is removed needn't be known as a whole.
const BATCH: usize = 4096;

const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// A directory on the way down.
struct Above {
    /// Which one it is.
    identity: Identity,
    /// What we went into there.
    name: OsString,
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
        name: name.to_owned(),
    }];
    let Some(mut here) = enter(&parent, name)? else {
        return Ok(());
    };
    loop {
        match clear(&here)? {
            Cleared::Up(name) => {
                let identity = Identity::of(&here)?;
                if let Some(below) = enter(&here, &name)? {
                    way.push(Above { identity, name });
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
fn clear(directory: impl AsFd) -> Result<Cleared, FilesError> {
    let directory = directory.as_fd();
    loop {
        let names = names_in(directory, BATCH)?;
        if names.is_empty() {
            return Ok(Cleared::All);
        }
        for name in names {
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
