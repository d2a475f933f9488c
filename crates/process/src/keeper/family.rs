//! Who descends from whom, for one who inherits every orphan.

use std::collections::{HashSet, VecDeque};
use std::io;

use rustix::process::Pid;

use crate::tree::table::{self, Entry};

/// How the children of a process are found on this host.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// The system has a list for each thread.
    Listed,
    /// In the table of all processes.
    Searched,
}

impl Family {
    /// Fails where `/proc` tells nothing: then no descendant could be named.
    pub(super) fn find() -> io::Result<Self> {
        let own = rustix::process::getpid();
        if std::fs::read(format!("/proc/self/task/{own}/children")).is_ok() {
            return Ok(Family::Listed);
        }
        match table::entry(own) {
            Some(_) => Ok(Family::Searched),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Its children, zombies too, as far as they can be seen.
    pub(super) fn children(self, parent: Pid) -> Vec<Pid> {
        match self {
            Family::Listed => listed(parent),
            Family::Searched => searched(&table::read(), parent),
        }
    }

    /// Everything below `root`, parents before their children, without those children of `root`
    /// that are `spared` and what is below them. Somebody who loses a parent meanwhile may be
    /// missed, and is found the next time.
    pub(super) fn below(self, root: Pid, spared: &HashSet<Pid>) -> Vec<Entry> {
        let table = match self {
            Family::Listed => Vec::new(),
            Family::Searched => table::read(),
        };
        let children = |parent| match self {
            Family::Listed => listed(parent),
            Family::Searched => searched(&table, parent),
        };
        let mut members = HashSet::from([root.as_raw_nonzero().get()]);
        let mut queue: VecDeque<_> = children(root).into();
        queue.retain(|child| !spared.contains(child));
        let mut found = Vec::new();
        while let Some(pid) = queue.pop_front() {
            // Looked at anew: only whose parent is one of us now is one of us.
            let Some(entry) = table::entry(pid) else {
                continue;
            };
            if members.contains(&entry.parent) && members.insert(pid.as_raw_nonzero().get()) {
                found.push(entry);
                queue.extend(children(pid));
            }
        }
        found
    }
}

fn listed(parent: Pid) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task"));
    let mut children = Vec::new();
    for task in tasks.into_iter().flatten().flatten() {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let numbers = list
            .split_ascii_whitespace()
            .filter_map(|word| word.parse().ok());
        children.extend(numbers.filter_map(Pid::from_raw));
    }
    children
}

fn searched(table: &[Entry], parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().get();
    let children = table.iter().filter(|entry| entry.parent == parent);
    children.map(|entry| entry.pid).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A shell with two sleeping children; killed and reaped in the end.
    struct Some3(std::process::Child);

    impl Some3 {
        fn start() -> Self {
            let mut shell = Command::new("sh");
            shell.args(["-c", "sleep 1000 & sleep 1000 & wait"]);
            Self(shell.stdout(Stdio::null()).spawn().expect("a shell"))
        }

        fn pid(&self) -> Pid {
            Pid::from_child(&self.0)
        }
    }

    impl Drop for Some3 {
        fn drop(&mut self) {
            let family = Family::Searched;
            for entry in family.below(self.pid(), &HashSet::new()) {
                entry.signal(rustix::process::Signal::KILL);
            }
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn both_ways_find_the_same() {
        let some = Some3::start();
        let own = rustix::process::getpid();
        while Family::Searched.children(some.pid()).len() < 2 {
            std::thread::yield_now();
        }
        let mut seen = Vec::new();
        for family in [Family::Listed, Family::Searched] {
            assert!(family.children(own).contains(&some.pid()));
            let mut below = family.below(some.pid(), &HashSet::new());
            below.sort_by_key(|entry| entry.pid.as_raw_nonzero());
            assert_eq!(below.len(), 2, "{family:?}");
            seen.push(below.iter().map(|entry| entry.pid).collect::<Vec<_>>());

            let whole = family.below(own, &HashSet::new());
            let place = |pid| whole.iter().position(|entry| entry.pid == pid);
            assert!(
                place(some.pid()) < place(below[0].pid),
                "parents come first"
            );
            let spared = family.below(own, &HashSet::from([some.pid()]));
            assert!(!spared.iter().any(|entry| entry.pid == below[0].pid));
        }
        assert_eq!(seen[0], seen[1]);
    }
}
