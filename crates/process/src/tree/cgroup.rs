//! A process tree in a cgroup of its own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitIdOptions};

use super::cgroup_members;
use super::cgroup_root::CgroupRoot;
use crate::leader;
use crate::sys::child_setup::ProbeTest;
use crate::sys::clone::{self, CloneOptions};
use crate::sys::stack::ChildStack;

/// The maximum depth of nested cgroups of a child that are removed.
const MAX_DEPTH: usize = 16;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// The cgroup of one process, identified by its number below the root and not held open.
///
/// An empty cgroup is returned to the root for reuse, because creating and removing one is a good part
/// of the cost of a start. Ownership is checked under a lock, so that a late call cannot kill the next
/// owner's processes.
#[derive(Debug)]
pub(crate) struct Cgroup {
    root: Arc<CgroupRoot>,
    number: u64,
    state: Mutex<State>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    Owned,
    /// Owned, and killed once. It must not be reused: kernels since 6.14 count the kills of a cgroup
    /// and kill a child that is cloned into it if the count differs from the parent's.
    Killed,
    Released,
}

impl Cgroup {
    /// Creates or reuses an empty cgroup. Returns it with its directory, for `CLONE_INTO_CGROUP`.
    pub(super) fn create(root: &Arc<CgroupRoot>) -> io::Result<(Self, OwnedFd)> {
        root.remove_abandoned();
        let (number, directory) = match reuse(root) {
            Some(reused) => reused,
            None => {
                let number = root.next_number();
                (number, create(root.directory(), number)?)
            }
        };
        let cgroup = Self {
            root: Arc::clone(root),
            number,
            state: Mutex::new(State::Owned),
        };
        Ok((cgroup, directory))
    }

    pub(super) fn kill(&self, leader: Pid, unreaped: bool) -> io::Result<()> {
        if unreaped {
            // Also kills a privileged leader that moved itself to another cgroup.
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
        let mut state = self.state.lock();
        if *state == State::Released {
            return Ok(());
        }
        *state = State::Killed;
        let file = format!("{}/cgroup.kill", self.number);
        match write(self.root.directory(), &file, b"1") {
            Err(Errno::NOENT | Errno::NODEV) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Sends a signal to all members, except those in one process group.
    pub(super) fn signal(&self, excluded_group: Option<Pid>, signal: Signal) -> io::Result<()> {
        let state = self.state.lock();
        if *state == State::Released {
            return Ok(());
        }
        let name = self.number.to_string();
        let directory = match open(self.root.directory(), &name, DIRECTORY) {
            Err(Errno::NOENT | Errno::NODEV) => return Ok(()),
            result => result?,
        };
        let directory = directory.as_fd();
        Ok(cgroup_members::signal_all(
            directory,
            excluded_group,
            signal,
            MAX_DEPTH,
        )?)
    }

    pub(super) fn is_populated(&self) -> bool {
        let state = self.state.lock();
        *state != State::Released && has_processes(self.root.directory(), self.number)
    }

    /// Returns the cgroup to the root if it is empty.
    pub(super) fn release_if_empty(&self) {
        let mut state = self.state.lock();
        let reusable = *state == State::Owned;
        if *state != State::Released
            && !has_processes(self.root.directory(), self.number)
            && self.root.release(self.number, reusable)
        {
            *state = State::Released;
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.release_if_empty();
        if *self.state.lock() != State::Released {
            self.root.abandon(self.number);
        }
    }
}

/// Opens a released cgroup.
fn reuse(root: &CgroupRoot) -> Option<(u64, OwnedFd)> {
    let number = root.take_released()?;
    match open(root.directory(), &number.to_string(), DIRECTORY) {
        Ok(directory) => Some((number, directory)),
        Err(_) => {
            // Descriptors may be exhausted; remove the cgroup later.
            root.abandon(number);
            None
        }
    }
}

/// Whether a process lives in the cgroup or below it.
fn has_processes(root: BorrowedFd<'_>, number: u64) -> bool {
    let file = format!("{number}/cgroup.events");
    match open(root, &file, OFlags::RDONLY) {
        Ok(events) => is_populated(&events),
        Err(error) => !matches!(error, Errno::NOENT | Errno::NODEV),
    }
}

/// Whether the child created cgroups below this one.
pub(super) fn has_nested(root: BorrowedFd<'_>, number: u64) -> bool {
    let stat = rustix::fs::statat(root, number.to_string(), AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(true, |stat| stat.st_nlink != 2)
}

/// Creates a cgroup, clones a child into it, and removes it again.
pub(super) fn probe(root: &CgroupRoot) -> io::Result<()> {
    let number = root.next_number();
    let directory = create(root.directory(), number)?;
    let result = probe_in(directory.as_fd());
    drop(directory);
    remove(root.directory(), number)?;
    result
}

fn probe_in(directory: BorrowedFd<'_>) -> io::Result<()> {
    let mut stack = ChildStack::new()?;
    let options = CloneOptions {
        cgroup: Some(directory),
        ..CloneOptions::default()
    };
    let child = clone::probe(options, &mut stack, ProbeTest::Exit)?;
    leader::wait_pidfd(&child.pidfd, WaitIdOptions::empty());
    Ok(write(directory, "cgroup.kill", b"1")?)
}

fn create(root: BorrowedFd<'_>, number: u64) -> io::Result<OwnedFd> {
    let name = number.to_string();
    rustix::fs::mkdirat(root, &name, Mode::from_raw_mode(0o755))?;
    let opened = open(root, &name, DIRECTORY);
    Ok(opened.inspect_err(|_| {
        let _ = rustix::fs::unlinkat(root, &name, AtFlags::REMOVEDIR);
    })?)
}

/// Removes an empty cgroup and those nested in it.
pub(super) fn remove(root: BorrowedFd<'_>, number: u64) -> Result<(), Errno> {
    let name = number.to_string();
    match rustix::fs::unlinkat(root, &name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::BUSY | Errno::NOTEMPTY) => {
            let directory = open(root, &name, DIRECTORY)?;
            remove_nested(directory.as_fd(), MAX_DEPTH)?;
            rustix::fs::unlinkat(root, &name, AtFlags::REMOVEDIR)
        }
        Err(error) => Err(error),
    }
}

/// Removes all cgroups below one, deepest first.
pub(super) fn remove_nested(directory: BorrowedFd<'_>, depth: usize) -> Result<(), Errno> {
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
        let nested = rustix::fs::openat(directory, name, flags, Mode::empty())?;
        remove_nested(nested.as_fd(), depth - 1)?;
        rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Reads `populated` from an open `cgroup.events`.
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
