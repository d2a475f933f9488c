//! Cgroups that servers left when they were killed.
//!
//! Each server marks its directory with its own identity in an extended attribute. A directory without
//! a mark is not ours, whatever its name is. A lock would not do: a child could hold it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

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

/// How long a server waits at its start for all that it has killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// How many characters of a command line are reported.
const MAX_COMMAND: usize = 200;

/// Identifies a server process on a running machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerMark {
    pid: Pid,
    /// The start time, which tells a reused pid apart.
    started: u64,
    /// The inode of its PID namespace. In another namespace the pid means nothing.
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

/// Kills and removes the cgroups of dead servers below `own`, logs each, and returns the processes
/// that are gone.
pub(super) fn end_all(own: &Path) -> Vec<EndedProcess> {
    let deadline = Instant::now() + EXIT_TIMEOUT;
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
            ended.extend(end(&path, &directory, mark, deadline));
        }
    }
    ended
}

fn end(path: &Path, directory: &OwnedFd, mark: ServerMark, deadline: Instant) -> Vec<EndedProcess> {
    let members = cgroup::all_members(directory.as_fd(), MAX_DEPTH);
    let processes: Vec<_> = members.into_iter().map(describe).collect();
    let killed = cgroup::write(directory.as_fd(), "cgroup.kill", b"1");
    let empty = wait_until_empty(directory.as_fd(), deadline);
    let _ = cgroup::remove_nested(directory.as_fd(), MAX_DEPTH);
    let removed = rustix::fs::rmdir(path);
    let (path, server) = (path.display(), mark.pid);
    if let Err(error) = killed {
        tracing::warn!(%path, %server, ?processes, %error, "cannot end what a dead server left");
        return Vec::new();
    }
    // Another server may have removed it.
    if !empty && !matches!(removed, Ok(()) | Err(Errno::NOENT)) {
        tracing::warn!(%path, %server, ?processes, "what a dead server left is still alive after SIGKILL");
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
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;
    use std::process::Command;

    use super::super::cgroup_root::own_cgroup;
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

    /// A directory that is removed, with all in it, at the end of a test.
    struct KillOnDrop(PathBuf);

    impl Drop for KillOnDrop {
        fn drop(&mut self) {
            let _ = std::fs::write(self.0.join("cgroup.kill"), "1");
            if let Ok(directory) = open_directory(&self.0) {
                wait_until_empty(directory.as_fd(), Instant::now() + EXIT_TIMEOUT);
                let _ = cgroup::remove_nested(directory.as_fd(), MAX_DEPTH);
            }
            let _ = rustix::fs::rmdir(&self.0);
        }
    }

    #[test]
    fn processes_of_dead_server_are_returned_once_they_are_gone() {
        // A directory of its own, which other spawners do not look into.
        let name = format!("stale-test-{}", std::process::id());
        let Some(own) = own_cgroup().map(|own| own.join(name)) else {
            return;
        };
        if std::fs::create_dir(&own).is_err() {
            return; // This host has no cgroups for us.
        }
        let own = KillOnDrop(own);
        let path = own.0.join(format!("{PREFIX}1-0"));
        std::fs::create_dir(&path).expect("it is made");
        let directory = open_directory(&path).expect("it opens");
        let mut dead = ServerMark::of_this_process().expect("there is a proc");
        dead.started -= 1;
        dead.set(&directory).expect("it is marked");
        let mut child = Command::new("sleep").arg("1000").spawn().expect("it runs");
        let pid = child.id();
        std::fs::write(path.join("cgroup.procs"), pid.to_string()).expect("it is moved");
        assert!(!wait_until_empty(directory.as_fd(), Instant::now()));

        let command = "sleep 1000".to_owned();
        assert_eq!(end_all(&own.0), [EndedProcess { pid, command }]);
        let status = child.wait().expect("it exits");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
        assert!(!path.exists());
    }

    #[test]
    fn malformed_mark_is_none() {
        for text in ["", "1", "1 2", "0 2 3", "x 2 3", "1 2 y"] {
            assert_eq!(ServerMark::parse(text.as_bytes()), None, "{text:?}");
        }
        assert!(ServerMark::parse(b"1 2 3").is_some());
    }
}
