//! A process tree that is a process group, completed by what `/proc` shows.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::proc_stat::{self, ProcStat};

/// The maximum number of scans per kill. A tree that forks faster is left to the group signal.
const MAX_SCANS: usize = 64;

/// The maximum number of leftover processes that are tracked.
const MAX_LEFTOVERS: usize = 256;

/// Tracks a tree by its leader's process group, session and descendants.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Pidfds of the processes left when the leader was reaped. After that the leader's pid may be
    /// reused, so only pidfds identify them.
    leftovers: Mutex<Vec<OwnedFd>>,
}

impl Group {
    pub(super) fn kill(&self, leader: Option<Pid>) -> io::Result<()> {
        if let Some(leader) = leader {
            return kill_all(leader);
        }
        for pidfd in &*self.leftovers.lock() {
            let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
        }
        Ok(())
    }

    /// Returns pidfds of the members outside the leader's process group, or of all leftovers once the
    /// leader is reaped.
    pub(super) fn outside_group(&self, leader: Option<Pid>) -> Vec<OwnedFd> {
        let Some(leader) = leader else {
            let leftovers = self.leftovers.lock();
            let copies = leftovers.iter().filter_map(|fd| fd.try_clone().ok());
            return copies.collect();
        };
        let group = leader.as_raw_nonzero().get();
        let members = TreeMembers::of(leader).find(&proc_stat::read_all());
        let outside = members.iter().filter(|member| member.group != group);
        outside.filter_map(ProcStat::open_pidfd).collect()
    }

    pub(super) fn is_alive(&self, leader: Option<Pid>) -> bool {
        if let Some(leader) = leader {
            let members = TreeMembers::of(leader).find(&proc_stat::read_all());
            return members.iter().any(|member| !member.zombie);
        }
        let mut leftovers = self.leftovers.lock();
        leftovers.retain(is_running);
        !leftovers.is_empty()
    }

    /// Opens pidfds of the processes left by a leader that was just reaped.
    pub(super) fn reap_leader(&self, leader: Pid) {
        // Without such a group there is nothing to look for. The group cannot be an unrelated one:
        // pids are reused only after all others were used.
        if rustix::process::test_kill_process_group(leader) == Err(Errno::SRCH) {
            return;
        }
        let members = TreeMembers::of(leader).find(&proc_stat::read_all());
        let running = members.iter().filter(|member| !member.zombie);
        let pidfds = running.filter_map(ProcStat::open_pidfd);
        *self.leftovers.lock() = pidfds.take(MAX_LEFTOVERS).collect();
    }
}

/// Kills all members repeatedly until a scan finds no new one. A killed process cannot fork any more,
/// and its earlier children are found by their group or session.
fn kill_all(leader: Pid) -> io::Result<()> {
    let mut membership = TreeMembers::of(leader);
    let mut killed = HashSet::new();
    let mut result = Ok(());
    for scan in 0..MAX_SCANS {
        // Find all members before the first is killed: a child is recognized by its parent only
        // while the parent lives.
        let members = membership.find(&proc_stat::read_all());
        if scan == 0 {
            result = match rustix::process::kill_process_group(leader, Signal::KILL) {
                Err(Errno::SRCH) => rustix::process::kill_process(leader, Signal::KILL),
                result => result,
            };
        }
        let mut found_new = false;
        for member in members.iter().filter(|member| !member.zombie) {
            if killed.insert((member.pid, member.started)) {
                found_new = true;
                member.signal(Signal::KILL);
            }
        }
        if !found_new {
            break;
        }
    }
    Ok(result?)
}

/// Whether the process of a pidfd has not exited.
pub(crate) fn is_running(pidfd: &OwnedFd) -> bool {
    let mut exited = [PollFd::new(pidfd, PollFlags::IN)];
    rustix::event::poll(&mut exited, Some(&Timespec::default())) == Ok(0)
}

/// Opens pidfds of the processes of a tree with these leaders, which were alive until now.
pub(crate) fn tree_pidfds(leaders: impl IntoIterator<Item = Pid>) -> Vec<OwnedFd> {
    let leaders = leaders.into_iter().map(|pid| pid.as_raw_nonzero().get());
    let leaders: HashSet<i32> = leaders.collect();
    let mut tree = TreeMembers {
        members: leaders.clone(),
        led: leaders,
    };
    let members = tree.find(&proc_stat::read_all());
    let running = members.iter().filter(|member| !member.zombie);
    running.filter_map(ProcStat::open_pidfd).collect()
}

/// Recognizes the members of a tree in snapshots of `/proc`.
struct TreeMembers {
    /// Pids of members. A process whose parent is a member is a member.
    members: HashSet<i32>,
    /// Ids of groups and sessions that a member leads or has led.
    led: HashSet<i32>,
}

impl TreeMembers {
    fn of(leader: Pid) -> Self {
        let leader = HashSet::from([leader.as_raw_nonzero().get()]);
        Self {
            members: leader.clone(),
            led: leader,
        }
    }

    /// Finds all members in a snapshot, and remembers their ids for the next one.
    fn find(&mut self, processes: &[ProcStat]) -> Vec<ProcStat> {
        let mut found: Vec<ProcStat> = Vec::new();
        loop {
            let before = found.len();
            for process in processes {
                let pid = process.pid.as_raw_nonzero().get();
                if found.iter().any(|known| known.pid == process.pid) || !self.includes(process) {
                    continue;
                }
                found.push(*process);
                self.members.insert(pid);
                if process.group == pid || process.session == pid {
                    self.led.insert(pid);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    fn includes(&self, process: &ProcStat) -> bool {
        self.members.contains(&process.pid.as_raw_nonzero().get())
            || self.members.contains(&process.parent)
            || self.led.contains(&process.group)
            || self.led.contains(&process.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, group: i32, session: i32) -> ProcStat {
        ProcStat {
            pid: Pid::from_raw(pid).expect("not zero"),
            parent,
            group,
            session,
            zombie: false,
            started: 0,
        }
    }

    fn pids(processes: &[ProcStat]) -> Vec<i32> {
        let mut pids: Vec<_> = processes
            .iter()
            .map(|process| process.pid.as_raw_nonzero().get())
            .collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn finds_descendants_in_any_order() {
        let processes = [
            process(30, 20, 20, 20), // grandchild, in the child's session
            process(20, 10, 20, 20), // child with its own session
            process(10, 1, 10, 1),   // the leader
            process(40, 1, 10, 1),   // orphan in the leader's group
            process(50, 1, 50, 50),  // unrelated
            process(1, 0, 1, 1),
        ];
        let leader = Pid::from_raw(10).expect("not zero");
        let found = TreeMembers::of(leader).find(&processes);
        assert_eq!(pids(&found), [10, 20, 30, 40]);
    }

    #[test]
    fn remembers_sessions_of_exited_members() {
        let leader = Pid::from_raw(10).expect("not zero");
        let mut membership = TreeMembers::of(leader);
        membership.find(&[process(10, 1, 10, 1), process(20, 10, 20, 20)]);
        let processes = [process(60, 1, 20, 20), process(70, 1, 70, 70)];
        assert_eq!(pids(&membership.find(&processes)), [60]);
    }
}
