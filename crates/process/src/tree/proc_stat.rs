//! Reads `/proc/PID/stat`.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal};

/// The fields of one process that are used here.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcStat {
    pub(crate) pid: Pid,
    /// Zero for processes started by the kernel.
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    pub(crate) zombie: bool,
    /// The start time. Together with the pid it identifies a process uniquely.
    pub(crate) started: u64,
}

impl ProcStat {
    /// Opens a pidfd of exactly this process. Returns `None` if it is gone.
    pub(crate) fn open_pidfd(&self) -> Option<OwnedFd> {
        let pidfd = rustix::process::pidfd_open(self.pid, PidfdFlags::empty()).ok()?;
        // Read after opening: if the pid was reused, the start time differs.
        let now = read(self.pid)?;
        (now.started == self.started).then_some(pidfd)
    }

    /// Sends a signal to exactly this process, if it still exists and may be signalled.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pidfd) = self.open_pidfd() {
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
    }
}

/// Reads all processes. The result is not an atomic snapshot.
pub(crate) fn read_all() -> Vec<ProcStat> {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    names
        .filter_map(|name| name.file_name().to_str()?.parse().ok())
        .filter_map(|number| read(Pid::from_raw(number)?))
        .collect()
}

/// Reads one process, if it exists.
pub(crate) fn read(pid: Pid) -> Option<ProcStat> {
    let line = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &line)
}

/// Parses `PID (COMMAND) STATE PARENT GROUP SESSION …`, where the command may contain any byte.
fn parse(pid: Pid, line: &[u8]) -> Option<ProcStat> {
    let command = line.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(line.get(command + 2..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    Some(ProcStat {
        pid,
        zombie: matches!(state, "Z" | "X"),
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        session: fields.next()?.parse().ok()?,
        started: fields.nth(15)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_command_with_parentheses_and_spaces() {
        let line = b"42 (a) b (c)) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 99 1\n";
        let pid = Pid::from_raw(42).expect("not zero");
        let expected = ProcStat {
            pid,
            parent: 7,
            group: 8,
            session: 9,
            zombie: false,
            started: 12345,
        };
        assert_eq!(parse(pid, line), Some(expected));
        assert_eq!(parse(pid, b"42 (a"), None);
    }

    #[test]
    fn finds_own_process() {
        let own = rustix::process::getpid();
        let found = read_all().into_iter().find(|stat| stat.pid == own);
        assert_eq!(found, read(own));
        assert!(found.is_some());
    }
}
