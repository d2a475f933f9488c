//! Signals the members of a cgroup individually.

use std::collections::HashSet;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

use super::cgroup;

/// Sends a signal to all members of a cgroup and its nested cgroups, except those in one process
/// group.
pub(super) fn signal_all(
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
        .filter_map(|pid| Some((pid, open_pidfd(pid)?)))
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
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type() != FileType::Directory || matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        // It may have been removed in the meantime.
        if let Ok(nested) = rustix::fs::openat(directory, name, flags, Mode::empty()) {
            signal_all(nested.as_fd(), excluded_group, signal, depth - 1)?;
        }
    }
    Ok(())
}

fn open_pidfd(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}

fn members(directory: BorrowedFd<'_>) -> Result<Vec<Pid>, Errno> {
    let file = match cgroup::open(directory, "cgroup.procs", OFlags::RDONLY) {
        // Removed in the meantime.
        Err(Errno::NOENT | Errno::NODEV) => return Ok(Vec::new()),
        result => result?,
    };
    let mut text = String::new();
    match std::fs::File::from(file).read_to_string(&mut text) {
        Ok(_) => {}
        Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
    let pids = text.lines().filter_map(|line| line.parse().ok());
    Ok(pids.filter_map(Pid::from_raw).collect())
}
