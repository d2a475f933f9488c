//! Process trees: all descendants of one child, however they fork.
//!
//! Hosts differ in how well they can track descendants. There is one implementation per kind:
//! - `cgroup`: a cgroup below the spawner's `cgroup_root`; `stale_cgroups` ends those of dead servers,
//!   `controllers` creates those with limits, `usage` reads what they count
//! - a subreaper process above the child, in [`crate::subreaper`]
//! - `group`: the process group, completed by what `/proc` shows (`proc_stat`)
//!
//! `factory` picks one for a spawner and creates the trees.

mod cgroup;
mod cgroup_root;
mod controllers;
mod factory;
mod group;
pub(crate) mod proc_stat;
mod stale_cgroups;
mod usage;

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::subreaper::{ControlMessage, SubreaperTree};
use cgroup::Cgroup;
pub use cgroup_root::unescape_mountinfo;
pub(crate) use cgroup_root::{CgroupMount, cgroup_path};
pub use factory::TreeChoice;
pub(crate) use factory::{NewTree, TreeFactory};
use group::Group;
pub(crate) use group::{is_running, tree_pidfds};
pub(crate) use usage::{CpuTime, TreeUsage};

/// The process tree of one child.
///
/// The parameter `leader` is its pid until it is reaped, so it is still its own. The caller holds the
/// lock that keeps it so.
#[derive(Debug)]
pub(crate) enum Tree {
    Cgroup(Cgroup),
    Subreaper(SubreaperTree),
    Group(Group),
}

impl Tree {
    /// Kills all processes.
    pub(crate) fn kill(&self, leader: Option<Pid>) -> io::Result<()> {
        if let Tree::Group(group) = self {
            return group.kill(leader);
        }
        if let Some(leader) = leader
            && self.leader_is_ours()
        {
            // At once, before its processes can do anything more. Also kills a privileged leader that
            // moved itself to another cgroup. A subreaper finds the rest, including processes that the
            // server is not permitted to signal.
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
        match self {
            Tree::Cgroup(cgroup) => cgroup.kill(),
            Tree::Subreaper(tree) => tree.kill(),
            Tree::Group(_) => Ok(()),
        }
    }

    /// Sends a signal to all processes: atomically to the leader's process group while its id is
    /// valid, as a terminal would, then to each of the others.
    pub(crate) fn signal(&self, leader: Option<Pid>, signal: Signal) -> io::Result<()> {
        // Found before the first is signalled: if it exits, its children get another parent.
        let others = match self {
            Tree::Group(group) => group.outside_group(leader),
            _ => Vec::new(),
        };
        let result = match leader.map(|leader| rustix::process::kill_process_group(leader, signal))
        {
            // The leader may have left its own group, and is then one of the others.
            None | Some(Err(Errno::SRCH)) => Ok(()),
            Some(result) => result,
        };
        match self {
            Tree::Cgroup(cgroup) => cgroup.signal(leader, signal)?,
            Tree::Subreaper(tree) => tree.send(ControlMessage::Signal {
                number: signal.as_raw(),
                outside_group_only: leader.is_some(),
            })?,
            Tree::Group(_) => {
                for pidfd in &others {
                    let _ = rustix::process::pidfd_send_signal(pidfd, signal);
                }
            }
        }
        Ok(result?)
    }

    /// Whether a process is alive.
    pub(crate) fn is_alive(&self, leader: Option<Pid>) -> bool {
        match self {
            Tree::Cgroup(cgroup) => cgroup.is_populated(),
            Tree::Subreaper(tree) => tree.is_alive(leader.is_some()),
            Tree::Group(group) => group.is_alive(leader),
        }
    }

    /// Begins to measure the usage, if the kind of tree can.
    pub(crate) fn measure(&self) {
        if let Tree::Cgroup(cgroup) = self {
            cgroup.measure();
        }
    }

    /// The usage since [`Tree::measure`].
    pub(crate) fn usage(&self) -> Option<TreeUsage> {
        match self {
            Tree::Cgroup(cgroup) => cgroup.usage(),
            Tree::Subreaper(_) | Tree::Group(_) => None,
        }
    }

    /// Whether the kernel is known to have killed a process because there was not enough memory.
    pub(crate) fn is_oom_killed(&self) -> bool {
        match self {
            Tree::Cgroup(cgroup) => cgroup.is_oom_killed(),
            Tree::Subreaper(_) | Tree::Group(_) => false,
        }
    }

    /// Whether the leader cannot have been reaped by another process.
    pub(crate) fn leader_is_ours(&self) -> bool {
        match self {
            Tree::Subreaper(tree) => tree.leader_is_ours(),
            Tree::Cgroup(_) | Tree::Group(_) => true,
        }
    }

    /// Records that the leader was just reaped, so its pid no longer identifies the tree.
    pub(crate) fn reap_leader(&self, leader: Pid) {
        match self {
            Tree::Cgroup(_) => {}
            Tree::Subreaper(tree) => tree.reap_leader(),
            Tree::Group(group) => group.reap_leader(leader),
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
