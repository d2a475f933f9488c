//! The system's table of processes.

use rustix::process::Pid;

/// One line of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: Pid,
    /// Zero for those the kernel started.
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// It has ended and wasn't reaped.
    pub(super) zombie: bool,
    /// With the number, this names a process for good.
    pub(super) started: u64,
}

/// Everything there is, each line at a moment of its own.
pub(super) fn read() -> Vec<Entry> {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    names
        .filter_map(|name| name.file_name().to_str()?.parse().ok())
        .filter_map(|number| entry(Pid::from_raw(number)?))
        .collect()
}

/// One process, if it is there.
pub(super) fn entry(pid: Pid) -> Option<Entry> {
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
