//! Cgroups that servers left when they were killed.
//!
//! Each server marks its directory with its own identity in an extended attribute. A directory without
//! a mark is not ours, whatever its name is. A lock would not do: a child could hold it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use outpost_types::EndedProcess;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use rustix::process::Pid;

use super::cgroup::{self, MAX_DEPTH};
use super::cgroup_root::{PREFIX, open_directory, wait_until_empty};
use super::proc_stat;

/// The extended attribute with the mark.
const ATTRIBUTE: &str = "user.outpost.server";

/// The longest mark: three numbers.
const MAX_MARK: usize = 64;

/// How many characters of a command line are reported.
const MAX_COMMAND: usize = 200;

/// Identifies a server process on a running machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerMark {
    pid: Pid,
    /// The start time, which tells a reused pid apart.
    started: u64,
    /// The inode of its PID namespace. In another one the pid means nothing.
    pid_namespace: u64,
}

impl ServerMark {
    pub(super) fn of_this_process() -> io::Result<Self> {
        let pid = rustix::process::getpid();
        let stat = proc_stat::read(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            pid,
            started: stat.started,
            pid_namespace: own_pid_namespace()?,
        })
    }

    pub(super) fn set(&self, directory: &OwnedFd) -> io::Result<()> {
        let Self {
            pid,
            started,
            pid_namespace,
        } = self;
        let text = format!("{pid} {started} {pid_namespace}");
        let flags = XattrFlags::empty();
        Ok(rustix::fs::fsetxattr(
            directory,
            ATTRIBUTE,
            text.as_bytes(),
            flags,
        )?)
    }

    fn read(directory: &OwnedFd) -> Option<Self> {
        let mut buffer = [0; MAX_MARK];
        let length = rustix::fs::fgetxattr(directory, ATTRIBUTE, &mut buffer).ok()?;
        Self::parse(buffer.get(..length)?)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers = str::from_utf8(text).ok()?.split(' ');
        Some(Self {
            pid: Pid::from_raw(numbers.next()?.parse().ok()?)?,
            started: numbers.next()?.parse().ok()?,
            pid_namespace: numbers.next()?.parse().ok()?,
        })
    }

    /// Whether the server is known to be gone.
    fn is_dead(&self) -> bool {
        if own_pid_namespace().ok() != Some(self.pid_namespace) {
            return false;
        }
        match proc_stat::read(self.pid) {
            Some(stat) => stat.started != self.started || stat.zombie,
            // Another user's process may be hidden.
            None => rustix::process::test_kill_process(self.pid) == Err(Errno::SRCH),
        }
    }
}

fn own_pid_namespace() -> io::Result<u64> {
    Ok(rustix::fs::stat("/proc/self/ns/pid")?.st_ino)
}

/// Kills and removes the cgroups of dead servers below `own`, logs each, and returns their processes.
pub(super) fn end_all(own: &Path) -> Vec<EndedProcess> {
    let mut ended = Vec::new();
    for entry in std::fs::read_dir(own).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if !name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let Ok(directory) = open_directory(&path) else {
            continue;
        };
        let Some(mark) = ServerMark::read(&directory) else {
            tracing::debug!(path = %path.display(), "cgroup has no mark of a server; left alone");
            continue;
        };
        if mark.is_dead() {
            ended.extend(end(&path, &directory, mark));
        }
    }
    ended
}

fn end(path: &Path, directory: &OwnedFd, mark: ServerMark) -> Vec<EndedProcess> {
    let members = cgroup::all_members(directory.as_fd(), MAX_DEPTH);
    let processes: Vec<_> = members.into_iter().map(describe).collect();
    let killed = cgroup::write(directory.as_fd(), "cgroup.kill", b"1");
    wait_until_empty(directory.as_fd());
    let _ = cgroup::remove_nested(directory.as_fd(), MAX_DEPTH);
    let removed = rustix::fs::rmdir(path);
    let (path, server) = (path.display(), mark.pid);
    if let Err(error) = killed {
        tracing::warn!(%path, %server, ?processes, %error, "cannot end what a dead server left");
        return Vec::new();
    }
    if processes.is_empty() {
        tracing::info!(%path, %server, ?removed, "removed the cgroup of a dead server");
    } else {
        tracing::warn!(%path, %server, ?processes, ?removed, "ended what a dead server left");
    }
    processes
}

fn describe(pid: Pid) -> EndedProcess {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&line).replace('\0', " ");
    EndedProcess {
        pid: pid.as_raw_nonzero().get().cast_unsigned(),
        command: command.trim_end().chars().take(MAX_COMMAND).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_tells_living_servers_from_dead_ones() {
        let own = ServerMark::of_this_process().expect("there is a proc");
        assert!(!own.is_dead());
        let earlier = ServerMark {
            started: own.started - 1,
            ..own
        };
        assert!(earlier.is_dead(), "the pid was reused");
        let elsewhere = ServerMark {
            pid_namespace: 1,
            ..earlier
        };
        assert!(!elsewhere.is_dead(), "nothing is known about it");
    }

    #[test]
    fn malformed_mark_is_none() {
        for text in ["", "1", "1 2", "0 2 3", "x 2 3", "1 2 y"] {
            assert_eq!(ServerMark::parse(text.as_bytes()), None, "{text:?}");
        }
        assert!(ServerMark::parse(b"1 2 3").is_some());
    }
}
