//! What belongs to a process: everything it started, and what that started, wherever it went.
//!
//! How well a host can tell differs, and each way has a file: `cgroup`, in the server's `grove`, and
//! with a `roll` of its members; `kept`, by a process of our own; `group`, with the system's
//! `table` of processes. `kinds` names them, and the `nursery` picks one and makes places.

mod cgroup;
mod group;
mod grove;
mod kept;
mod kinds;
mod mount;
mod nursery;
mod roll;
pub(crate) mod table;

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use cgroup::Cgroup;
use group::Group;
use kept::Kept;
pub use kinds::{TreeChoice, TreeKind};
pub(crate) use nursery::{Nursery, Place};

/// What is known of one process's tree. `unreaped` says in each call whether the leader's number
/// is still its own; the caller holds the lock that keeps it so.
#[derive(Debug)]
pub(crate) enum Tree {
    Cgroup(Cgroup),
    Keeper(Kept),
    Group(Group),
}

impl Tree {
    /// Kills everything.
    pub(crate) fn kill(&self, leader: Pid, unreaped: bool) -> io::Result<()> {
        match self {
            Tree::Cgroup(cgroup) => cgroup.kill(leader, unreaped),
            Tree::Keeper(kept) => kept.kill(leader, unreaped),
            Tree::Group(group) => group.kill(leader, unreaped),
        }
    }

    /// Sends a signal to everybody: to the leader's group at one moment, as from a terminal, as long
    /// as its number names it, and to each of the others.
    pub(crate) fn signal(&self, leader: Pid, unreaped: bool, signal: Signal) -> io::Result<()> {
        let group = || match unreaped {
            true => signal_group(leader, signal),
            false => Ok(()),
        };
        match self {
            Tree::Cgroup(cgroup) => {
                let told = group();
                cgroup.signal(unreaped.then_some(leader), signal)?;
                told
            }
            Tree::Keeper(kept) => {
                let told = group();
                kept.signal(signal, unreaped)?;
                told
            }
            Tree::Group(others) => {
                // All are found before the first is told: it may end, and then its children have
                // another parent.
                let others = others.beside(leader, unreaped);
                let told = group();
                for pidfd in &others {
                    let _ = rustix::process::pidfd_send_signal(pidfd, signal);
                }
                told
            }
        }
    }

    /// Whether anything lives.
    pub(crate) fn is_alive(&self, leader: Pid, unreaped: bool) -> bool {
        match self {
            Tree::Cgroup(cgroup) => cgroup.is_populated(),
            Tree::Keeper(kept) => kept.is_alive(unreaped),
            Tree::Group(group) => group.is_alive(leader, unreaped),
        }
    }

    /// Whether nobody but us can have reaped a leader that we haven't.
    pub(crate) fn vouches(&self) -> bool {
        match self {
            Tree::Keeper(kept) => kept.vouches(),
            Tree::Cgroup(_) | Tree::Group(_) => true,
        }
    }

    /// The leader has just been reaped: what is left has to be known by other means now.
    pub(crate) fn orphaned(&self, leader: Pid) {
        match self {
            Tree::Cgroup(_) => {}
            Tree::Keeper(kept) => kept.orphaned(),
            Tree::Group(group) => group.remember(leader),
        }
    }

    /// Gives up what is no longer needed.
    pub(crate) fn settle(&self) {
        match self {
            Tree::Cgroup(cgroup) => cgroup.settle(),
            Tree::Keeper(kept) => kept.settle(),
            Tree::Group(_) => {}
        }
    }
}

fn signal_group(leader: Pid, signal: Signal) -> io::Result<()> {
    match rustix::process::kill_process_group(leader, signal) {
        // The leader may have left its own group, and then is one of the others.
        Err(Errno::SRCH) => Ok(()),
        result => Ok(result?),
    }
}
