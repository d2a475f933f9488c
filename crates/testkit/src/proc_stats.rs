//! Resource usage of a process, from `/proc`.

use std::fs;

use crate::{deadline, test_tag};

/// Reads `/proc` entries of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcStats {
    pid: i32,
}

impl ProcStats {
    /// Creates a reader for `pid`.
    pub fn of(pid: i32) -> Self {
        ProcStats { pid }
    }

    /// The state letter (`R`, `S`, `T`, `Z`), or None if the process does not exist.
    pub fn state(self) -> Option<char> {
        test_tag::stat(self.pid)?[0].chars().next()
    }

    /// Waits until the process has exited. It may stay a zombie: the first process of a container does not
    /// always reap orphans.
    pub async fn wait_exited(self) {
        deadline::poll_until("the end of a process", || {
            matches!(self.state(), None | Some('Z' | 'X')).then_some(())
        })
        .await;
    }

    /// The name, or None if the process does not exist.
    pub fn name(self) -> Option<String> {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid)).ok()?;
        Some(name.trim_end().to_owned())
    }

    /// The bytes written so far.
    pub fn written(self) -> u64 {
        self.field("io", "wchar:")
    }

    /// Resident memory, in KiB.
    pub fn rss_kib(self) -> u64 {
        self.field("status", "VmRSS:")
    }

    /// Peak resident memory, in KiB.
    pub fn peak_rss_kib(self) -> u64 {
        self.field("status", "VmHWM:")
    }

    /// Virtual memory, in KiB, which RLIMIT_AS limits.
    pub fn size_kib(self) -> u64 {
        self.field("status", "VmSize:")
    }

    /// The number of open descriptors.
    pub fn open_files(self) -> usize {
        let path = format!("/proc/{}/fd", self.pid);
        match fs::read_dir(&path) {
            Ok(entries) => entries.count(),
            // Another process of this user must not look into the server. The size of the directory is
            // the number of descriptors since Linux 6.2.
            Err(_) => fs::metadata(&path).map_or(0, |found| found.len() as usize),
        }
    }

    /// Direct children that are zombies.
    pub fn zombies(self) -> Vec<i32> {
        let mut children = self.children();
        children.retain(|pid| ProcStats::of(*pid).state() == Some('Z'));
        children
    }

    /// Direct children, zombies included.
    pub fn children(self) -> Vec<i32> {
        let parent = self.pid.to_string();
        test_tag::pids()
            .filter(|pid| test_tag::stat(*pid).is_some_and(|fields| fields[1] == parent))
            .collect()
    }

    /// The number in the line of `/proc/PID/FILE` that starts with `name`.
    fn field(self, file: &str, name: &str) -> u64 {
        let pid = self.pid;
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or_else(|| panic!("{pid} has no {name}"))
    }
}
