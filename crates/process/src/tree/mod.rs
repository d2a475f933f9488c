//! What belongs to a process: everything it started, and what that started, wherever it went.
//!
//! How well a host can tell differs, and each way has a file. A further kind, a stage between
//! spawner and child that is the subreaper of the tree, would be one more.

mod cgroup;
mod group;
mod grove;
mod mount;
mod table;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::Pid;

use cgroup::Cgroup;
use group::Group;
use grove::Grove;

/// Which kinds of tree a spawner may use.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum TreeChoice {
    /// The best this host has.
    #[default]
    Auto,
    /// Process groups, even where there is better.
    Group,
}

/// How a tree is kept together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// A cgroup for each process: nothing leaves it, and all of it dies at once.
    Cgroup,
    /// The process group, its session, and what `/proc` tells about descendants. One that left its
    /// session and lost its parent can't be found.
    Group,
}

/// Makes a place for each new tree.
#[derive(Debug)]
pub(crate) enum Nursery {
    /// Every tree holds it too; the last to go removes it.
    Cgroups(Arc<Grove>),
    Groups,
}

/// What is known of one process's tree. `unreaped` says in each call whether the leader's number
/// is still its own; the caller holds the lock that keeps it so.
#[derive(Debug)]
pub(crate) enum Tree {
    Cgroup(Cgroup),
    Group(Group),
}

impl Nursery {
    pub(crate) fn open(choice: TreeChoice, old_call: bool) -> Self {
        // Only the newer clone puts a child into its cgroup before it runs.
        if choice == TreeChoice::Group || old_call {
            return Nursery::Groups;
        }
        match Grove::open() {
            Ok(grove) => Nursery::Cgroups(Arc::new(grove)),
            Err(error) => {
                tracing::info!(%error, "no cgroup can be made here; process groups are used");
                Nursery::Groups
            }
        }
    }

    /// A place for one tree, and the cgroup to clone into where that is what it is.
    pub(crate) fn plant(&self) -> io::Result<(Tree, Option<OwnedFd>)> {
        match self {
            Nursery::Cgroups(grove) => {
                let (cgroup, directory) = Cgroup::make(grove)?;
                Ok((Tree::Cgroup(cgroup), Some(directory)))
            }
            Nursery::Groups => Ok((Tree::Group(Group::default()), None)),
        }
    }

    pub(crate) fn kind(&self) -> TreeKind {
        match self {
            Nursery::Cgroups(_) => TreeKind::Cgroup,
            Nursery::Groups => TreeKind::Group,
        }
    }
}

impl Tree {
    /// Kills everything.
    pub(crate) fn kill(&self, leader: Pid, unreaped: bool) -> io::Result<()> {
        match self {
            Tree::Cgroup(cgroup) => cgroup.kill(leader, unreaped),
            Tree::Group(group) => group.kill(leader, unreaped),
        }
    }

    /// Whether anything lives.
    pub(crate) fn is_alive(&self, leader: Pid, unreaped: bool) -> bool {
        match self {
            Tree::Cgroup(cgroup) => cgroup.is_populated(),
            Tree::Group(group) => group.is_alive(leader, unreaped),
        }
    }

    /// The leader has just been reaped: what is left has to be known by other means now.
    pub(crate) fn orphaned(&self, leader: Pid) {
        if let Tree::Group(group) = self {
            group.remember(leader);
        }
    }

    /// Gives up what is no longer needed.
    pub(crate) fn settle(&self) {
        if let Tree::Cgroup(cgroup) = self {
            cgroup.settle();
        }
    }
}
