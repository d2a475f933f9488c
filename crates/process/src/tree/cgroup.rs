//! A tree that is a cgroup.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitIdOptions};

use super::grove::Grove;
use crate::leader;
use crate::sys::birth::Trial;
use crate::sys::clone::{self, How};
use crate::sys::stack::ChildStack;

/// How deep a child may have nested cgroups of its own for us to remove them.
const DEPTH: usize = 16;

/// The cgroup of one process, known by its number and held by no descriptor.
#[derive(Debug)]
pub(crate) struct Cgroup {
    grove: Arc<Grove>,
    number: u64,
    removed: AtomicBool,
}

impl Cgroup {
    /// Makes an empty one, and opens it to be cloned into.
    pub(super) fn make(grove: &Arc<Grove>) -> io::Result<(Self, OwnedFd)> {
        grove.tidy();
        let cgroup = Self {
            grove: Arc::clone(grove),
            number: grove.number(),
            removed: AtomicBool::new(false),
        };
        let directory = create(grove.directory(), cgroup.number).inspect_err(|_| {
            // Not there to be removed.
            cgroup.removed.store(true, Ordering::Relaxed);
        })?;
        Ok((cgroup, directory))
    }

    pub(super) fn kill(&self, leader: Pid, unreaped: bool) -> io::Result<()> {
        if unreaped {
            // For one that was privileged and has moved itself out.
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
        let file = format!("{}/cgroup.kill", self.number);
        match write(self.grove.directory(), &file, b"1") {
            Err(Errno::NOENT | Errno::NODEV) => Ok(()),
            result => Ok(result?),
        }
    }

    pub(super) fn is_populated(&self) -> bool {
        let file = format!("{}/cgroup.events", self.number);
        open(self.grove.directory(), &file, OFlags::RDONLY)
            .is_ok_and(|events| is_populated(&events))
    }

    /// Removes it if nothing lives in it.
    pub(super) fn settle(&self) {
        if self.removed.load(Ordering::Relaxed) {
            return;
        }
        if remove(self.grove.directory(), self.number).is_ok() {
            self.removed.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.settle();
        if !*self.removed.get_mut() {
            self.grove.leave(self.number);
        }
    }
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
    let opened = open(grove, &name, OFlags::RDONLY | OFlags::DIRECTORY);
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
            let directory = open(grove, &name, OFlags::RDONLY | OFlags::DIRECTORY)?;
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
