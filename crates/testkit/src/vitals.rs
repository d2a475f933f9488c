//! How much of the machine a process takes.

use std::fs;

use crate::mark;

/// What `/proc` tells about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vitals {
    pid: i32,
}

impl Vitals {
    /// Of this process.
    pub fn of(pid: i32) -> Self {
        Vitals { pid }
    }

    /// What it is doing, as `/proc` says it: `R`, `S`, `T`, `Z`; nothing if it isn't there.
    pub fn state(self) -> Option<char> {
        mark::stat(self.pid)?[0].chars().next()
    }

    /// How many bytes it has written so far, to whatever.
    pub fn written(self) -> u64 {
        let pid = self.pid;
        let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        let number = line.and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("nobody knows what {pid} has written"))
    }

    /// Memory in use, in KiB.
    pub fn rss_kib(self) -> u64 {
        self.status("VmRSS:")
    }

    /// The most memory that was ever in use, in KiB.
    pub fn peak_rss_kib(self) -> u64 {
        self.status("VmHWM:")
    }

    /// Addresses in use, in KiB: what a limit of memory is a limit of.
    pub fn size_kib(self) -> u64 {
        self.status("VmSize:")
    }

    /// How many descriptors are open.
    pub fn open_files(self) -> usize {
        let pid = self.pid;
        let entries = fs::read_dir(format!("/proc/{pid}/fd"));
        entries
            .unwrap_or_else(|error| panic!("the descriptors of {pid} can't be seen: {error}"))
            .count()
    }

    /// The direct children that have ended and were not waited for.
    pub fn zombies(self) -> Vec<i32> {
        let mut children = self.children();
        children.retain(|pid| Vitals::of(*pid).state() == Some('Z'));
        children
    }

    /// The direct children, zombies among them.
    pub fn children(self) -> Vec<i32> {
        let parent = self.pid.to_string();
        mark::pids()
            .filter(|pid| mark::stat(*pid).is_some_and(|fields| fields[1] == parent))
            .collect()
    }

    fn status(self, name: &str) -> u64 {
        let pid = self.pid;
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or_else(|| panic!("{pid} has no {name}"))
    }
}
