//! Creates process trees of the kind that a spawner uses.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use outpost_types::TreeKind;

use super::Tree;
use super::cgroup::Cgroup;
use super::cgroup_root::CgroupRoot;
use super::group::Group;
use super::kinds::{Clone3Unavailable, NoCommand, TreeChoice, Unavailable};
use crate::spawn_context::FdTableMode;
use crate::subreaper::{ReaperCommand, ReaperHandle, ReaperPool};

/// Creates the process trees of one spawner.
#[derive(Debug)]
pub(crate) enum TreeFactory {
    Cgroups(Arc<CgroupRoot>),
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
    pub(crate) fn open(
        choice: TreeChoice,
        subreaper: Option<&ReaperCommand>,
        legacy_clone: bool,
        fd_table: FdTableMode,
    ) -> io::Result<Self> {
        let subreapers = || match subreaper {
            Some(command) => {
                ReaperPool::open(command, legacy_clone, fd_table).map(TreeFactory::Subreapers)
            }
            None => Err(io::Error::other(NoCommand)),
        };
        match choice {
            TreeChoice::Cgroup => cgroups(legacy_clone).map_err(unavailable(TreeKind::Cgroup)),
            TreeChoice::Subreaper => subreapers().map_err(unavailable(TreeKind::Subreaper)),
            TreeChoice::Group => Ok(TreeFactory::Groups),
            TreeChoice::Auto => Ok(cgroups(legacy_clone)
                .inspect_err(|error| tracing::debug!(%error, "cgroups are unavailable"))
                .or_else(|_| subreapers())
                .unwrap_or_else(|error| {
                    tracing::info!(%error, "subreapers are unavailable; using process groups");
                    TreeFactory::Groups
                })),
        }
    }

    pub(crate) fn create(&self) -> io::Result<NewTree> {
        match self {
            TreeFactory::Cgroups(root) => {
                let (cgroup, directory) = Cgroup::create(root)?;
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

fn cgroups(legacy_clone: bool) -> io::Result<TreeFactory> {
    if legacy_clone {
        return Err(io::Error::other(Clone3Unavailable));
    }
    Ok(TreeFactory::Cgroups(Arc::new(CgroupRoot::open()?)))
}

fn unavailable(kind: TreeKind) -> impl Fn(io::Error) -> io::Error {
    move |cause| io::Error::other(Unavailable { kind, cause })
}
