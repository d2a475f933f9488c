//! Who is in a cgroup, one by one.

use std::collections::HashSet;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

use super::cgroup;

/// Sends a signal to everybody in a cgroup and below it who isn't in this group.
pub(super) fn call(
    directory: BorrowedFd<'_>,
    except: Option<Pid>,
    signal: Signal,
    depth: usize,
) -> Result<(), Errno> {
    let held: Vec<_> = members(directory)?
        .into_iter()
        .filter(|pid| except.is_none() || rustix::process::getpgid(Some(*pid)).ok() != except)
        .filter_map(|pid| Some((pid, hold(pid)?)))
        .collect();
    // Read again when we have them: who is still named there is who we have, or was none of us
    // and is dead, so that nothing reaches it.
    let still: HashSet<_> = members(directory)?.into_iter().collect();
    for (_, pidfd) in held.iter().filter(|(pid, _)| still.contains(pid)) {
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
        // It may have been removed since.
        if let Ok(below) = rustix::fs::openat(directory, name, flags, Mode::empty()) {
            call(below.as_fd(), except, signal, depth - 1)?;
        }
    }
    Ok(())
}

fn hold(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}

fn members(directory: BorrowedFd<'_>) -> Result<Vec<Pid>, Errno> {
    let file = match cgroup::open(directory, "cgroup.procs", OFlags::RDONLY) {
        // Removed while we looked.
        Err(Errno::NOENT | Errno::NODEV) => return Ok(Vec::new()),
        result => result?,
    };
    let mut text = String::new();
    match std::fs::File::from(file).read_to_string(&mut text) {
        Ok(_) => {}
        Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
    let numbers = text.lines().filter_map(|line| line.parse().ok());
    Ok(numbers.filter_map(Pid::from_raw).collect())
}
