//! The system's table of processes.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal};

/// One line of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: Pid,
    /// Zero for those the kernel started.
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// It has ended and wasn't reaped.
    pub(crate) zombie: bool,
    /// With the number, this names a process for good.
    pub(crate) started: u64,
}

impl Entry {
    /// A descriptor of the very process this speaks of; none if it is gone.
    pub(crate) fn hold(&self) -> Option<OwnedFd> {
        let pidfd = rustix::process::pidfd_open(self.pid, PidfdFlags::empty()).ok()?;
        // Asked after it was opened: if the number has changed hands, so has the time.
        let now = entry(self.pid)?;
        (now.started == self.started).then_some(pidfd)
    }

    /// Sends a signal to the very process this speaks of. Who is gone isn't told, and who isn't
    /// ours to signal doesn't listen.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pidfd) = self.hold() {
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
    }
}

/// Everything there is, each line at a moment of its own.
pub(crate) fn read() -> Vec<Entry> {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    names
        .filter_map(|name| name.file_name().to_str()?.parse().ok())
        .filter_map(|number| entry(Pid::from_raw(number)?))
        .collect()
}

/// One process, if it is there.
pub(crate) fn entry(pid: Pid) -> Option<Entry> {
    let line = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &line)
}

/// `PID (COMMAND) STATE PARENT GROUP SESSION …`, where the command may contain anything.
fn parse(pid: Pid, line: &[u8]) -> Option<Entry> {
    let command = line.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(line.get(command + 2..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    Some(Entry {
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
    fn reads_a_line_with_an_awkward_name() {
        let line = b"42 (a) b (c)) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 99 1\n";
        let pid = Pid::from_raw(42).expect("not zero");
        let expected = Entry {
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
    fn finds_this_very_process() {
        let own = rustix::process::getpid();
        let found = read().into_iter().find(|entry| entry.pid == own);
        assert_eq!(found, entry(own));
        assert!(found.is_some());
    }
}
