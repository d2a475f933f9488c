//! A tree that is a cgroup.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitIdOptions};

use super::grove::Grove;
use super::roll;
use crate::leader;
use crate::sys::birth::Trial;
use crate::sys::clone::{self, How};
use crate::sys::stack::ChildStack;

/// How deep a child may have nested cgroups of its own for us to remove them.
const DEPTH: usize = 16;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// The cgroup of one process, known by its number and held by no descriptor.
///
/// Once it is empty it is given back, to be the next process's: making and removing one costs a good
/// part of a start. Whose it is meanwhile is looked up under a lock, so that nobody who is late kills
/// a stranger.
#[derive(Debug)]
pub(crate) struct Cgroup {
    grove: Arc<Grove>,
    number: u64,
    state: Mutex<State>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    Ours,
    /// Ours, and killed once. Kernels since 6.14 count the kills of a cgroup, compare the count of
    /// the parent's with the one a child is cloned into, and kill the child if they differ: so
    /// nobody may be put into this one again.
    Killed,
    GivenBack,
}

impl Cgroup {
    /// Makes an empty one, and opens it to be cloned into.
    pub(super) fn make(grove: &Arc<Grove>) -> io::Result<(Self, OwnedFd)> {
        grove.tidy();
        let (number, directory) = match used_before(grove) {
            Some(place) => place,
            None => {
                let number = grove.number();
                (number, create(grove.directory(), number)?)
            }
        };
        let cgroup = Self {
            grove: Arc::clone(grove),
            number,
            state: Mutex::new(State::Ours),
        };
        Ok((cgroup, directory))
    }

    pub(super) fn kill(&self, leader: Pid, unreaped: bool) -> io::Result<()> {
        if unreaped {
            // For one that was privileged and has moved itself out.
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
        let mut state = self.lock();
        if *state == State::GivenBack {
            return Ok(());
        }
        *state = State::Killed;
        let file = format!("{}/cgroup.kill", self.number);
        match write(self.grove.directory(), &file, b"1") {
            Err(Errno::NOENT | Errno::NODEV) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Sends a signal to everybody who isn't in this group.
    pub(super) fn signal(&self, except: Option<Pid>, signal: Signal) -> io::Result<()> {
        let state = self.lock();
        if *state == State::GivenBack {
            return Ok(());
        }
        let name = self.number.to_string();
        let directory = match open(self.grove.directory(), &name, DIRECTORY) {
            Err(Errno::NOENT | Errno::NODEV) => return Ok(()),
            result => result?,
        };
        Ok(roll::call(directory.as_fd(), except, signal, DEPTH)?)
    }

    pub(super) fn is_populated(&self) -> bool {
        let state = self.lock();
        *state != State::GivenBack && has_life(self.grove.directory(), self.number)
    }

    /// Gives it back if nothing lives in it.
    pub(super) fn settle(&self) {
        let mut state = self.lock();
        let reusable = *state == State::Ours;
        if *state != State::GivenBack
            && !has_life(self.grove.directory(), self.number)
            && self.grove.take_back(self.number, reusable)
        {
            *state = State::GivenBack;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.settle();
        if *self.lock() != State::GivenBack {
            self.grove.leave(self.number);
        }
    }
}

/// One that was given back, opened again.
fn used_before(grove: &Grove) -> Option<(u64, OwnedFd)> {
    let number = grove.reuse()?;
    match open(grove.directory(), &number.to_string(), DIRECTORY) {
        Ok(directory) => Some((number, directory)),
        Err(_) => {
            // There may be no descriptors just now; it is removed later.
            grove.leave(number);
            None
        }
    }
}

/// Whether anything lives in a cgroup or below it.
fn has_life(grove: BorrowedFd<'_>, number: u64) -> bool {
    let file = format!("{number}/cgroup.events");
    match open(grove, &file, OFlags::RDONLY) {
        Ok(events) => is_populated(&events),
        Err(error) => !matches!(error, Errno::NOENT | Errno::NODEV),
    }
}

/// Whether a child has made cgroups of its own below this one.
pub(super) fn has_below(grove: BorrowedFd<'_>, number: u64) -> bool {
    let stat = rustix::fs::statat(grove, number.to_string(), AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(true, |stat| stat.st_nlink != 2)
}

/// Makes a cgroup, clones a child into it, and removes it again.
pub(super) fn probe(grove: &Grove) -> io::Result<()> {
    let number = grove.number();
    let directory = create(grove.directory(), number)?;
    let result = probe_in(directory.as_fd());
    drop(directory);
    remove(grove.directory(), number)?;
    result
}

fn probe_in(directory: BorrowedFd<'_>) -> io::Result<()> {
    let mut stack = ChildStack::new()?;
    let how = How {
        cgroup: Some(directory),
        ..How::default()
    };
    let child = clone::attempt(how, &mut stack, Trial::Live)?;
    leader::ask(&child.pidfd, WaitIdOptions::empty());
    Ok(write(directory, "cgroup.kill", b"1")?)
}

fn create(grove: BorrowedFd<'_>, number: u64) -> io::Result<OwnedFd> {
    let name = number.to_string();
    rustix::fs::mkdirat(grove, &name, Mode::from_raw_mode(0o755))?;
    let opened = open(grove, &name, DIRECTORY);
    Ok(opened.inspect_err(|_| {
        let _ = rustix::fs::unlinkat(grove, &name, AtFlags::REMOVEDIR);
    })?)
}

/// Removes a cgroup nothing lives in, with those that were made below it.
pub(super) fn remove(grove: BorrowedFd<'_>, number: u64) -> Result<(), Errno> {
    let name = number.to_string();
    match rustix::fs::unlinkat(grove, &name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::BUSY | Errno::NOTEMPTY) => {
            let directory = open(grove, &name, DIRECTORY)?;
            remove_below(directory.as_fd(), DEPTH)?;
            rustix::fs::unlinkat(grove, &name, AtFlags::REMOVEDIR)
        }
        Err(error) => Err(error),
    }
}

/// Removes all cgroups below one, deepest first.
pub(super) fn remove_below(directory: BorrowedFd<'_>, depth: usize) -> Result<(), Errno> {
    if depth == 0 {
        return Err(Errno::BUSY);
    }
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type() != FileType::Directory || matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let below = rustix::fs::openat(directory, name, flags, Mode::empty())?;
        remove_below(below.as_fd(), depth - 1)?;
        rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Whether anything lives in the cgroup whose `cgroup.events` this is, or below it.
pub(super) fn is_populated(events: &OwnedFd) -> bool {
    let mut buffer = [0; 256];
    let read = rustix::io::pread(events, &mut buffer, 0).unwrap_or(0);
    let mut lines = buffer[..read].split(|byte| *byte == b'\n');
    lines.any(|line| line == b"populated 1")
}

/// Writes to a file of a cgroup.
pub(super) fn write(directory: BorrowedFd<'_>, file: &str, bytes: &[u8]) -> Result<(), Errno> {
    let file = open(directory, file, OFlags::WRONLY)?;
    rustix::io::write(&file, bytes)?;
    Ok(())
}

pub(super) fn open(directory: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, Mode::empty())
}
