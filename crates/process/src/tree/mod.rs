//! Process trees: all descendants of one child, however they fork.
//!
//! Hosts differ in how well they can track descendants. There is one implementation per kind:
//! - `cgroup`: a cgroup below the spawner's `cgroup_root`; `cgroup_members` signals its processes
//! - `subreaper`: a subreaper process above the child
//! - `group`: the process group, completed by what `/proc` shows (`proc_stat`)
//!
//! `kinds` names them. `factory` picks one for a spawner and creates the trees.

mod cgroup;
mod cgroup_members;
mod cgroup_root;
mod factory;
mod group;
mod kinds;
mod own_cgroup;
pub(crate) mod proc_stat;
mod subreaper;

use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::subreaper::ReaperHandle;
use cgroup::Cgroup;
pub(crate) use factory::{NewTree, TreeFactory};
use group::Group;
pub use kinds::TreeChoice;
use subreaper::SubreaperTree;

/// The process tree of one child.
///
/// The parameter `unreaped` says in each call that the leader was not reaped, so its pid is still its
/// own. The caller holds the lock that keeps it so.
#[derive(Debug)]
pub(crate) enum Tree {
    Cgroup(Cgroup),
    Subreaper(SubreaperTree),
    Group(Group),
}

impl Tree {
    /// The tree of a program that this subreaper has started.
    pub(crate) fn supervised(reaper: Arc<ReaperHandle>) -> Self {
        Tree::Subreaper(SubreaperTree::new(reaper))
    }

    /// Kills all processes.
    pub(crate) fn kill(&self, leader: Pid, unreaped: bool) -> io::Result<()> {
        match self {
            Tree::Cgroup(cgroup) => cgroup.kill(leader, unreaped),
            Tree::Subreaper(tree) => tree.kill(leader, unreaped),
            Tree::Group(group) => group.kill(leader, unreaped),
        }
    }

    /// Sends a signal to all processes: atomically to the leader's process group while its id is
    /// valid, as a terminal would, then to each of the others.
    pub(crate) fn signal(&self, leader: Pid, unreaped: bool, signal: Signal) -> io::Result<()> {
        let signal_group = || {
            if unreaped {
                signal_group(leader, signal)
            } else {
                Ok(())
            }
        };
        match self {
            Tree::Cgroup(cgroup) => {
                let result = signal_group();
                cgroup.signal(unreaped.then_some(leader), signal)?;
                result
            }
            Tree::Subreaper(tree) => {
                let result = signal_group();
                tree.signal(signal, unreaped)?;
                result
            }
            Tree::Group(group) => {
                // Find all others before the first is signalled: if it exits, its children get
                // another parent.
                let others = group.outside_group(leader, unreaped);
                let result = signal_group();
                for pidfd in &others {
                    let _ = rustix::process::pidfd_send_signal(pidfd, signal);
                }
                result
            }
        }
    }

    /// Whether a process is alive.
    pub(crate) fn is_alive(&self, leader: Pid, unreaped: bool) -> bool {
        match self {
            Tree::Cgroup(cgroup) => cgroup.is_populated(),
            Tree::Subreaper(tree) => tree.is_alive(unreaped),
            Tree::Group(group) => group.is_alive(leader, unreaped),
        }
    }

    /// Whether no other process can have reaped a leader that this one has not.
    pub(crate) fn leader_is_ours(&self) -> bool {
        match self {
            Tree::Subreaper(tree) => tree.leader_is_ours(),
            Tree::Cgroup(_) | Tree::Group(_) => true,
        }
    }

    /// Records that the leader was just reaped, so its pid no longer identifies the tree.
    pub(crate) fn leader_reaped(&self, leader: Pid) {
        match self {
            Tree::Cgroup(_) => {}
            Tree::Subreaper(tree) => tree.leader_reaped(),
            Tree::Group(group) => group.leader_reaped(leader),
        }
    }

    /// Releases the tree's resources if it is empty.
    pub(crate) fn release_if_empty(&self) {
        match self {
            Tree::Cgroup(cgroup) => cgroup.release_if_empty(),
            Tree::Subreaper(tree) => tree.release_if_empty(),
            Tree::Group(_) => {}
        }
    }
}

fn signal_group(leader: Pid, signal: Signal) -> io::Result<()> {
    match rustix::process::kill_process_group(leader, signal) {
        // The leader may have left its own group, and is then one of the others.
        Err(Errno::SRCH) => Ok(()),
        result => Ok(result?),
    }
}
