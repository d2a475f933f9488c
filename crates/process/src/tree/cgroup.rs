//! A process tree in a cgroup of its own.

use std::collections::HashSet;
use std::ffi::CStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitIdOptions, pidfd_open};

use super::cgroup_root::CgroupRoot;
use super::usage::{CpuTime, TreeUsage, field};
use crate::exit;
use crate::sys::child_setup::CloneProbe;
use crate::sys::clone::{self, CloneOptions};
use crate::sys::stack::ChildStack;

/// The maximum depth of nested cgroups of a child that are removed.
pub(super) const MAX_DEPTH: usize = 16;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// The cgroup of one process, identified by its number below the root. Only its `cgroup.kill` is held
/// open, until it is released.
///
/// An empty cgroup is returned to the root for reuse, because creating and removing one is a good part
/// of the cost of a start. Ownership is checked under a lock, so that a late call cannot kill the next
/// owner's processes.
#[derive(Debug)]
pub(crate) struct Cgroup {
    root: Arc<CgroupRoot>,
    number: u64,
    state: Mutex<State>,
    /// The CPU time that earlier owners have used; `None` if the usage is not measured.
    used_before: OnceLock<CpuTime>,
}

/// The first two hold `cgroup.kill` open, so that killing needs no free descriptor.
#[derive(Debug)]
enum State {
    Owned(OwnedFd),
    /// Owned, and killed once. It must not be reused: kernels since 6.14 count the kills of a cgroup
    /// and kill a child that is cloned into it if the count differs from the parent's.
    Killed(OwnedFd),
    Released,
}

impl Cgroup {
    /// Creates or reuses an empty cgroup. Returns it with its directory, for `CLONE_INTO_CGROUP`.
    pub(super) fn create(root: &Arc<CgroupRoot>) -> io::Result<(Self, OwnedFd)> {
        root.remove_abandoned();
        let (number, directory) = match reuse(root) {
            Some(reused) => reused,
            None => create(root)?,
        };
        let kill = open(directory.as_fd(), "cgroup.kill", OFlags::WRONLY);
        let kill = kill.inspect_err(|_| root.abandoned.lock().push(number))?;
        let cgroup = Self {
            root: Arc::clone(root),
            number,
            state: Mutex::new(State::Owned(kill)),
            used_before: OnceLock::new(),
        };
        Ok((cgroup, directory))
    }

    /// Kills all members. Needs no free descriptor.
    pub(super) fn kill(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let kill = match std::mem::replace(&mut *state, State::Released) {
            State::Owned(kill) | State::Killed(kill) => kill,
            State::Released => return Ok(()),
        };
        let written = rustix::io::pwrite(&kill, b"1", 0);
        *state = State::Killed(kill);
        match written {
            Ok(_) | Err(Errno::NOENT | Errno::NODEV) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a signal to all members, except those in one process group.
    pub(super) fn signal(&self, excluded_group: Option<Pid>, signal: Signal) -> io::Result<()> {
        let state = self.state.lock();
        if matches!(*state, State::Released) {
            return Ok(());
        }
        let name = self.number.to_string();
        let directory = match open(self.root.directory(), &name, DIRECTORY) {
            Err(Errno::NOENT | Errno::NODEV) => return Ok(()),
            result => result?,
        };
        Ok(signal_all(
            directory.as_fd(),
            excluded_group,
            signal,
            MAX_DEPTH,
        )?)
    }

    /// Begins to measure the usage.
    pub(super) fn measure(&self) {
        if let Some(used) = self.read("cpu.stat").map(|text| CpuTime::parse(&text)) {
            let _ = self.used_before.set(used);
        }
    }

    /// The usage since [`Cgroup::measure`].
    pub(super) fn usage(&self) -> Option<TreeUsage> {
        let before = self.used_before.get()?;
        let cpu = CpuTime::parse(&self.read("cpu.stat")?).since(*before);
        let peak = self.read("memory.peak");
        Some(TreeUsage {
            cpu,
            peak_memory_bytes: peak.and_then(|text| text.trim().parse().ok()),
        })
    }

    /// Whether the kernel killed a member because there was not enough memory.
    pub(super) fn is_oom_killed(&self) -> bool {
        let events = self.read("memory.events");
        events.is_some_and(|text| field(&text, "oom_kill") > 0)
    }

    /// Reads one of its files, if it is still owned.
    fn read(&self, file: &str) -> Option<String> {
        let state = self.state.lock();
        if matches!(*state, State::Released) {
            return None;
        }
        let file = format!("{}/{file}", self.number);
        let file = open(self.root.directory(), &file, OFlags::RDONLY).ok()?;
        let mut text = String::new();
        std::fs::File::from(file).read_to_string(&mut text).ok()?;
        Some(text)
    }

    pub(super) fn is_populated(&self) -> bool {
        self.has_processes(&self.state.lock())
    }

    /// Returns the cgroup to the root if it is empty.
    pub(super) fn release_if_empty(&self) {
        let mut state = self.state.lock();
        let reusable = matches!(*state, State::Owned(_));
        if !matches!(*state, State::Released)
            && !self.has_processes(&state)
            && self.root.release(self.number, reusable)
        {
            *state = State::Released;
        }
    }

    /// Whether a process lives in the cgroup or below it. True if that cannot be found out.
    fn has_processes(&self, state: &State) -> bool {
        let file = format!("{}/cgroup.events", self.number);
        match (open(self.root.directory(), &file, OFlags::RDONLY), state) {
            (_, State::Released) => false,
            (Ok(events), _) => is_populated(&events),
            (Err(Errno::NOENT | Errno::NODEV), _) => false,
            // Without a free descriptor, try to remove it, which succeeds only if it is empty.
            (Err(_), State::Killed(_)) => {
                let removed = self.root.remove_directory(self.number);
                !matches!(removed, Ok(()) | Err(Errno::NOENT | Errno::NODEV))
            }
            (Err(_), State::Owned(_)) => true,
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.release_if_empty();
        if !matches!(*self.state.lock(), State::Released) {
            self.root.abandoned.lock().push(self.number);
        }
    }
}

/// Opens a released cgroup.
fn reuse(root: &CgroupRoot) -> Option<(u64, OwnedFd)> {
    let number = root.released.lock().pop()?;
    let opened = open(root.directory(), &number.to_string(), DIRECTORY);
    if opened.is_err() {
        // Descriptors may be exhausted; remove the cgroup later.
        root.abandoned.lock().push(number);
    }
    Some((number, opened.ok()?))
}

/// Whether the child created cgroups below this cgroup.
pub(super) fn has_nested(root: BorrowedFd<'_>, number: u64) -> bool {
    let stat = rustix::fs::statat(root, number.to_string(), AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(true, |stat| stat.st_nlink != 2)
}

/// Creates a cgroup, clones a child into it, and removes it again.
pub(super) fn probe(root: &CgroupRoot) -> io::Result<()> {
    let (number, directory) = create(root)?;
    let result = probe_in(directory.as_fd());
    drop(directory);
    remove(root, number)?;
    result
}

fn probe_in(directory: BorrowedFd<'_>) -> io::Result<()> {
    let mut stack = ChildStack::new()?;
    let options = CloneOptions {
        cgroup: Some(directory),
        ..CloneOptions::default()
    };
    let child = clone::probe(options, &mut stack, CloneProbe::Exit)?;
    exit::wait_pidfd(&child.pidfd, WaitIdOptions::empty());
    Ok(write(directory, "cgroup.kill", b"1")?)
}

/// Creates a cgroup with a number that none below this root has had.
fn create(root: &CgroupRoot) -> io::Result<(u64, OwnedFd)> {
    let number = root.next.fetch_add(1, Ordering::Relaxed);
    let name = number.to_string();
    rustix::fs::mkdirat(root.directory(), &name, Mode::from_raw_mode(0o755))?;
    let opened = open(root.directory(), &name, DIRECTORY);
    let opened = opened.inspect_err(|_| {
        let _ = rustix::fs::unlinkat(root.directory(), &name, AtFlags::REMOVEDIR);
    });
    Ok((number, opened?))
}

/// Removes an empty cgroup and those nested in it.
pub(super) fn remove(root: &CgroupRoot, number: u64) -> Result<(), Errno> {
    match root.remove_directory(number) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::BUSY | Errno::NOTEMPTY) => {
            let directory = open(root.directory(), &number.to_string(), DIRECTORY)?;
            remove_nested(directory.as_fd(), MAX_DEPTH)?;
            root.remove_directory(number)
        }
        Err(error) => Err(error),
    }
}

/// Removes all cgroups below one, deepest first.
pub(super) fn remove_nested(directory: BorrowedFd<'_>, depth: usize) -> Result<(), Errno> {
    if depth == 0 {
        return Err(Errno::BUSY);
    }
    for_each_nested(directory, |name| {
        let nested = open_nested(directory, name)?;
        remove_nested(nested.as_fd(), depth - 1)?;
        rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)
    })
}

/// Sends a signal to all members of a cgroup and its nested cgroups, except those in one process
/// group.
fn signal_all(
    directory: BorrowedFd<'_>,
    excluded_group: Option<Pid>,
    signal: Signal,
    depth: usize,
) -> Result<(), Errno> {
    let is_excluded = |pid: Pid| {
        excluded_group.is_some() && rustix::process::getpgid(Some(pid)).ok() == excluded_group
    };
    let opened: Vec<_> = members(directory)?
        .into_iter()
        .filter(|pid| !is_excluded(*pid))
        .filter_map(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)))
        .collect();
    // Read again after opening the pidfds, because a pid may have been reused in between. A pid that
    // is still listed belongs to a member now; its pidfd refers to that member or to a dead process.
    let still: HashSet<_> = members(directory)?.into_iter().collect();
    for (_, pidfd) in opened.iter().filter(|(pid, _)| still.contains(pid)) {
        let _ = rustix::process::pidfd_send_signal(pidfd, signal);
    }
    if depth == 0 {
        return Ok(());
    }
    for_each_nested(directory, |name| {
        // It may have been removed in the meantime.
        match open_nested(directory, name) {
            Ok(nested) => signal_all(nested.as_fd(), excluded_group, signal, depth - 1),
            Err(_) => Ok(()),
        }
    })
}

/// Lists the members of a cgroup and of those nested in it.
pub(super) fn all_members(directory: BorrowedFd<'_>, depth: usize) -> Vec<Pid> {
    let mut pids = members(directory).unwrap_or_default();
    if depth > 0 {
        let _ = for_each_nested(directory, |name| {
            let nested = open_nested(directory, name)?;
            pids.extend(all_members(nested.as_fd(), depth - 1));
            Ok(())
        });
    }
    pids
}

fn members(directory: BorrowedFd<'_>) -> Result<Vec<Pid>, Errno> {
    let file = match open(directory, "cgroup.procs", OFlags::RDONLY) {
        // Removed in the meantime.
        Err(Errno::NOENT | Errno::NODEV) => return Ok(Vec::new()),
        result => result?,
    };
    let mut text = String::new();
    let read = std::fs::File::from(file).read_to_string(&mut text);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let pids = text.lines().filter_map(|line| line.parse().ok());
    Ok(pids.filter_map(Pid::from_raw).collect())
}

/// Calls `work` with the name of each cgroup directly below one.
fn for_each_nested(
    directory: BorrowedFd<'_>,
    mut work: impl FnMut(&CStr) -> Result<(), Errno>,
) -> Result<(), Errno> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type() == FileType::Directory && !matches!(name.to_bytes(), b"." | b"..") {
            work(name)?;
        }
    }
    Ok(())
}

fn open_nested(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(directory, name, flags, Mode::empty())
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
