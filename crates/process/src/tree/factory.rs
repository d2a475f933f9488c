//! Picks a kind of process tree for a spawner, and creates the trees.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use outpost_types::{EndedProcess, TreeKind};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::Tree;
use super::cgroup::Cgroup;
use super::cgroup_root::CgroupRoot;
use super::group::Group;
use crate::subreaper::{ReaperCommand, ReaperHandle, ReaperPool};
use crate::sys::child_setup::CloneMode;

/// Which kinds of tree a spawner may use.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TreeChoice {
    /// The best kind that this host supports: cgroups, else subreapers if there is a command for
    /// them, else process groups.
    #[default]
    Auto,
    /// Cgroups only.
    Cgroup,
    /// Subreapers only, even if cgroups are available. `keeper` is the former name.
    #[serde(alias = "keeper")]
    Subreaper,
    /// Process groups, even if another kind is available.
    Group,
}

/// Why a kind of tree is unavailable on this host.
#[derive(Debug, thiserror::Error)]
enum Unavailable {
    #[error("cannot use process trees of kind {kind}: {cause}")]
    Requested {
        kind: TreeKind,
        /// Not a `source`: the message contains it already.
        cause: io::Error,
    },
    #[error("no subreaper command is set")]
    NoCommand,
    /// Only `clone3` can start a child inside a cgroup.
    #[error("clone3 is not allowed")]
    NoClone3,
}

/// Creates the process trees of one spawner.
#[derive(Debug)]
pub(crate) enum TreeFactory {
    /// The root is replaced if another process removes its directory.
    Cgroups(Mutex<Arc<CgroupRoot>>),
    Subreapers(Arc<ReaperPool>),
    Groups,
}

/// A tree without processes.
#[derive(Debug)]
pub(crate) enum NewTree {
    /// The spawner thread clones the child, into the cgroup if there is one.
    Direct(Tree, Option<OwnedFd>),
    /// This subreaper starts the child.
    ViaSubreaper(ReaperHandle),
}

impl TreeFactory {
    /// Opens a factory of a kind that this host supports. Also returns the processes of dead servers
    /// that were killed.
    pub(crate) fn open(
        choice: TreeChoice,
        subreaper: Option<&ReaperCommand>,
        clone_mode: CloneMode,
    ) -> io::Result<(Self, Vec<EndedProcess>)> {
        let subreapers = || match subreaper {
            Some(command) => ReaperPool::open(command, clone_mode).map(TreeFactory::Subreapers),
            None => Err(io::Error::other(Unavailable::NoCommand)),
        };
        let cgroups = || {
            if clone_mode.legacy_clone {
                return Err(io::Error::other(Unavailable::NoClone3));
            }
            let (root, ended) = CgroupRoot::open()?;
            Ok((TreeFactory::Cgroups(Mutex::new(Arc::new(root))), ended))
        };
        let none_ended = |factory| (factory, Vec::new());
        match choice {
            TreeChoice::Cgroup => cgroups().map_err(unavailable(TreeKind::Cgroup)),
            TreeChoice::Subreaper => {
                let opened = subreapers().map(none_ended);
                opened.map_err(unavailable(TreeKind::Subreaper))
            }
            TreeChoice::Group => Ok(none_ended(TreeFactory::Groups)),
            TreeChoice::Auto => Ok(cgroups()
                .inspect_err(|error| tracing::debug!(%error, "cgroups are unavailable"))
                .or_else(|_| subreapers().map(none_ended))
                .unwrap_or_else(|error| {
                    tracing::info!(%error, "subreapers are unavailable; using process groups");
                    none_ended(TreeFactory::Groups)
                })),
        }
    }

    pub(crate) fn create(&self) -> io::Result<NewTree> {
        match self {
            TreeFactory::Cgroups(root) => {
                let (cgroup, directory) = create_cgroup(root)?;
                Ok(NewTree::Direct(Tree::Cgroup(cgroup), Some(directory)))
            }
            TreeFactory::Subreapers(pool) => Ok(NewTree::ViaSubreaper(pool.get()?)),
            TreeFactory::Groups => Ok(NewTree::Direct(Tree::Group(Group::default()), None)),
        }
    }

    pub(crate) fn kind(&self) -> TreeKind {
        match self {
            TreeFactory::Cgroups(_) => TreeKind::Cgroup,
            TreeFactory::Subreapers(_) => TreeKind::Subreaper,
            TreeFactory::Groups => TreeKind::Group,
        }
    }
}

/// Creates a cgroup, in a new directory if the current one was removed.
fn create_cgroup(root: &Mutex<Arc<CgroupRoot>>) -> io::Result<(Cgroup, OwnedFd)> {
    let current = Arc::clone(&root.lock());
    match Cgroup::create(&current) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => {
            let mut root = root.lock();
            if Arc::ptr_eq(&root, &current) {
                *root = Arc::new(current.create_again()?);
            }
            Cgroup::create(&root)
        }
        created => created,
    }
}

fn unavailable(kind: TreeKind) -> impl Fn(io::Error) -> io::Error {
    move |cause| io::Error::other(Unavailable::Requested { kind, cause })
}
