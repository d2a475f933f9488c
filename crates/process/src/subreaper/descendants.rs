//! Enumerates the descendants of a subreaper.

use std::collections::{HashSet, VecDeque};
use std::io;

use rustix::process::Pid;

use crate::tree::proc_stat::{self, ProcStat};

/// How the children of a process are found on this host.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum ChildLookupMethod {
    /// From `/proc/PID/task/TID/children`, which needs `CONFIG_PROC_CHILDREN`.
    ChildrenFile,
    /// By scanning all of `/proc`.
    Scan,
}

impl ChildLookupMethod {
    /// Picks a method. Fails without a usable `/proc`, where no descendant could be found.
    pub(super) fn detect() -> io::Result<Self> {
        let own = rustix::process::getpid();
        if std::fs::read(format!("/proc/self/task/{own}/children")).is_ok() {
            return Ok(ChildLookupMethod::ChildrenFile);
        }
        match proc_stat::read(own) {
            Some(_) => Ok(ChildLookupMethod::Scan),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Lists the visible children, including zombies.
    pub(super) fn children(self, parent: Pid) -> Vec<Pid> {
        self.children_in(&self.snapshot(), parent)
    }

    /// Reads all processes if this method needs them.
    fn snapshot(self) -> Vec<ProcStat> {
        match self {
            ChildLookupMethod::ChildrenFile => Vec::new(),
            ChildLookupMethod::Scan => proc_stat::read_all(),
        }
    }

    fn children_in(self, snapshot: &[ProcStat], parent: Pid) -> Vec<Pid> {
        if self == ChildLookupMethod::ChildrenFile {
            return read_children(parent);
        }
        let parent = parent.as_raw_nonzero().get();
        let children = snapshot.iter().filter(|stat| stat.parent == parent);
        children.map(|stat| stat.pid).collect()
    }

    /// Lists all descendants of `root`, parents before their children, without the `excluded`
    /// children of `root` and their descendants. A process that is reparented during the scan may be
    /// missed; the next scan finds it.
    pub(super) fn descendants(self, root: Pid, excluded: &HashSet<Pid>) -> Vec<ProcStat> {
        let snapshot = self.snapshot();
        let mut members = HashSet::from([root.as_raw_nonzero().get()]);
        let mut queue: VecDeque<_> = self.children_in(&snapshot, root).into();
        queue.retain(|child| !excluded.contains(child));
        let mut found = Vec::new();
        while let Some(pid) = queue.pop_front() {
            // Read again: the pid may have been reused since, so the parent must be a member now.
            let Some(stat) = proc_stat::read(pid) else {
                continue;
            };
            if members.contains(&stat.parent) && members.insert(pid.as_raw_nonzero().get()) {
                found.push(stat);
                queue.extend(self.children_in(&snapshot, pid));
            }
        }
        found
    }
}

fn read_children(parent: Pid) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task"));
    let mut children = Vec::new();
    for task in tasks.into_iter().flatten().flatten() {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let pids = list
            .split_ascii_whitespace()
            .filter_map(|word| word.parse().ok());
        children.extend(pids.filter_map(Pid::from_raw));
    }
    children
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A shell with two sleeping children; killed and reaped on drop.
    struct ShellWithChildren(std::process::Child);

    impl ShellWithChildren {
        fn start() -> Self {
            let mut shell = Command::new("sh");
            shell.args(["-c", "sleep 1000 & sleep 1000 & wait"]);
            Self(shell.stdout(Stdio::null()).spawn().expect("start a shell"))
        }

        fn pid(&self) -> Pid {
            Pid::from_child(&self.0)
        }
    }

    impl Drop for ShellWithChildren {
        fn drop(&mut self) {
            for stat in ChildLookupMethod::Scan.descendants(self.pid(), &HashSet::new()) {
                stat.signal(rustix::process::Signal::KILL);
            }
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn both_lookups_find_the_same_descendants() {
        let shell = ShellWithChildren::start();
        let own = rustix::process::getpid();
        while ChildLookupMethod::Scan.children(shell.pid()).len() < 2 {
            std::thread::yield_now();
        }
        let mut results = Vec::new();
        for lookup in [ChildLookupMethod::ChildrenFile, ChildLookupMethod::Scan] {
            assert!(lookup.children(own).contains(&shell.pid()));
            let mut below = lookup.descendants(shell.pid(), &HashSet::new());
            below.sort_by_key(|stat| stat.pid.as_raw_nonzero());
            assert_eq!(below.len(), 2, "{lookup:?}");
            results.push(below.iter().map(|stat| stat.pid).collect::<Vec<_>>());

            let all = lookup.descendants(own, &HashSet::new());
            let index = |pid| all.iter().position(|stat| stat.pid == pid);
            assert!(
                index(shell.pid()) < index(below[0].pid),
                "parents come first"
            );
            let excluded = HashSet::from([shell.pid()]);
            let rest = lookup.descendants(own, &excluded);
            assert!(!rest.iter().any(|stat| stat.pid == below[0].pid));
        }
        assert_eq!(results[0], results[1]);
    }
}
