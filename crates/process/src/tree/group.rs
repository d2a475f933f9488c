//! A tree that is a process group, as far as `/proc` tells more.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::table::{self, Entry};

/// A tree that forks faster than this many sweeps can follow is left to its group signal.
const SWEEPS: usize = 64;

/// How many leftovers of one process are remembered.
const REMEMBERED: usize = 256;

/// What is known of a tree besides its leader's number.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// What was left of the group and its session when the leader was reaped. From then on the
    /// numbers may be anybody's, and only these descriptors name what they named.
    left: Mutex<Vec<OwnedFd>>,
}

impl Group {
    pub(super) fn kill(&self, leader: Pid, unreaped: bool) -> io::Result<()> {
        if unreaped {
            return kill_all(leader);
        }
        for pidfd in &*self.left() {
            let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
        }
        Ok(())
    }

    /// Those who left the leader's group, and all that is left once the leader is reaped.
    pub(super) fn beside(&self, leader: Pid, unreaped: bool) -> Vec<OwnedFd> {
        if !unreaped {
            let left = self.left();
            return left.iter().filter_map(|fd| fd.try_clone().ok()).collect();
        }
        let group = leader.as_raw_nonzero().get();
        let members = Kin::of(leader).find(&table::read());
        let others = members.iter().filter(|member| member.group != group);
        others.filter_map(Entry::hold).collect()
    }

    pub(super) fn is_alive(&self, leader: Pid, unreaped: bool) -> bool {
        if unreaped {
            let mut kin = Kin::of(leader);
            return kin.find(&table::read()).iter().any(|entry| !entry.zombie);
        }
        let mut left = self.left();
        left.retain(is_running);
        !left.is_empty()
    }

    /// Takes note of what the leader, just reaped, has left behind.
    pub(super) fn remember(&self, leader: Pid) {
        // No such group: nothing to look for. A group of a stranger can't be meant, since numbers
        // come round only after all others have been used.
        if rustix::process::test_kill_process_group(leader) == Err(Errno::SRCH) {
            return;
        }
        let members = Kin::of(leader).find(&table::read());
        let running = members.iter().filter(|entry| !entry.zombie);
        *self.left() = running.filter_map(Entry::hold).take(REMEMBERED).collect();
    }

    fn left(&self) -> std::sync::MutexGuard<'_, Vec<OwnedFd>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kills everything that can be found, again and again until nothing new turns up: what is killed
/// can't fork any more, and what it forked before is found by its group or session.
fn kill_all(leader: Pid) -> io::Result<()> {
    let mut kin = Kin::of(leader);
    let mut killed = HashSet::new();
    let mut refused = Ok(());
    for sweep in 0..SWEEPS {
        // All are found before the first is killed: a child is known by its parent only as long
        // as that lives.
        let members = kin.find(&table::read());
        if sweep == 0 {
            refused = match rustix::process::kill_process_group(leader, Signal::KILL) {
                Err(Errno::SRCH) => rustix::process::kill_process(leader, Signal::KILL),
                result => result,
            };
        }
        let mut fresh = false;
        for member in members.iter().filter(|member| !member.zombie) {
            if killed.insert((member.pid, member.started)) {
                fresh = true;
                member.signal(Signal::KILL);
            }
        }
        if !fresh {
            break;
        }
    }
    Ok(refused?)
}

fn is_running(pidfd: &OwnedFd) -> bool {
    let mut ended = [PollFd::new(pidfd, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut ended, Some(&at_once)) == Ok(0)
}

/// The numbers by which members of a tree are recognized.
struct Kin {
    /// Members themselves: whose parent is one is one.
    members: HashSet<i32>,
    /// Groups and sessions that a member leads or has led.
    led: HashSet<i32>,
}

impl Kin {
    fn of(leader: Pid) -> Self {
        let leader = HashSet::from([leader.as_raw_nonzero().get()]);
        Self {
            members: leader.clone(),
            led: leader,
        }
    }

    /// All members in the table; what is learned on the way is kept for the next one.
    fn find(&mut self, table: &[Entry]) -> Vec<Entry> {
        let mut found: Vec<Entry> = Vec::new();
        loop {
            let before = found.len();
            for entry in table {
                let number = entry.pid.as_raw_nonzero().get();
                if found.iter().any(|known| known.pid == entry.pid) || !self.includes(entry) {
                    continue;
                }
                found.push(*entry);
                self.members.insert(number);
                if entry.group == number || entry.session == number {
                    self.led.insert(number);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    fn includes(&self, entry: &Entry) -> bool {
        self.members.contains(&entry.pid.as_raw_nonzero().get())
            || self.members.contains(&entry.parent)
            || self.led.contains(&entry.group)
            || self.led.contains(&entry.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: i32, parent: i32, group: i32, session: i32) -> Entry {
        Entry {
            pid: Pid::from_raw(pid).expect("not zero"),
            parent,
            group,
            session,
            zombie: false,
            started: 0,
        }
    }

    fn numbers(entries: &[Entry]) -> Vec<i32> {
        let mut numbers: Vec<_> = entries
            .iter()
            .map(|entry| entry.pid.as_raw_nonzero().get())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn finds_children_whatever_the_order_of_the_table() {
        let table = [
            entry(30, 20, 20, 20), // grandchild, in the child's session
            entry(20, 10, 20, 20), // child with a session of its own
            entry(10, 1, 10, 1),   // the leader
            entry(40, 1, 10, 1),   // orphan in the leader's group
            entry(50, 1, 50, 50),  // a stranger
            entry(1, 0, 1, 1),
        ];
        let leader = Pid::from_raw(10).expect("not zero");
        assert_eq!(numbers(&Kin::of(leader).find(&table)), [10, 20, 30, 40]);
    }

    #[test]
    fn remembers_the_sessions_of_those_who_have_gone() {
        let leader = Pid::from_raw(10).expect("not zero");
        let mut kin = Kin::of(leader);
        kin.find(&[entry(10, 1, 10, 1), entry(20, 10, 20, 20)]);
        let table = [entry(60, 1, 20, 20), entry(70, 1, 70, 70)];
        assert_eq!(numbers(&kin.find(&table)), [60]);
    }
}
