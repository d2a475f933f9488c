//! Where new trees get their place.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::Tree;
use super::cgroup::Cgroup;
use super::group::Group;
use super::grove::Grove;
use super::kept::Kept;
use super::kinds::{NoCommand, OldCall, TreeChoice, TreeKind, Unavailable};
use crate::keeper::{KeeperCommand, Nest, Tether};
use crate::means::Tables;

/// Makes a place for each new tree.
#[derive(Debug)]
pub(crate) enum Nursery {
    /// Every tree holds it too; the last to go removes it.
    Cgroups(Arc<Grove>),
    /// Every tree holds it too; the last to go lets the mother end.
    Keepers(Arc<Nest>),
    Groups,
}

/// A tree nobody is in yet.
#[derive(Debug)]
pub(crate) enum Place {
    /// The child is cloned by us, into the cgroup where that is what it is.
    Here(Tree, Option<OwnedFd>),
    /// The child is started by this keeper.
    Kept(Tether),
}

impl Nursery {
    pub(crate) fn open(
        choice: TreeChoice,
        keeper: Option<&KeeperCommand>,
        old_call: bool,
        tables: Tables,
    ) -> io::Result<Self> {
        let keepers = || match keeper {
            Some(command) => Nest::open(command, old_call, tables).map(Nursery::Keepers),
            None => Err(io::Error::other(NoCommand)),
        };
        match choice {
            TreeChoice::Cgroup => cgroups(old_call).map_err(unavailable(TreeKind::Cgroup)),
            TreeChoice::Keeper => keepers().map_err(unavailable(TreeKind::Keeper)),
            TreeChoice::Group => Ok(Nursery::Groups),
            TreeChoice::Auto => Ok(cgroups(old_call)
                .inspect_err(|error| tracing::debug!(%error, "no cgroup can be made here"))
                .or_else(|_| keepers())
                .unwrap_or_else(|error| {
                    tracing::info!(%error, "no keeper can be had; process groups are used");
                    Nursery::Groups
                })),
        }
    }

    /// A place for one tree.
    pub(crate) fn plant(&self) -> io::Result<Place> {
        match self {
            Nursery::Cgroups(grove) => {
                let (cgroup, directory) = Cgroup::make(grove)?;
                Ok(Place::Here(Tree::Cgroup(cgroup), Some(directory)))
            }
            Nursery::Keepers(nest) => Ok(Place::Kept(nest.keeper()?)),
            Nursery::Groups => Ok(Place::Here(Tree::Group(Group::default()), None)),
        }
    }

    pub(crate) fn kind(&self) -> TreeKind {
        match self {
            Nursery::Cgroups(_) => TreeKind::Cgroup,
            Nursery::Keepers(_) => TreeKind::Keeper,
            Nursery::Groups => TreeKind::Group,
        }
    }
}

impl Tree {
    /// The tree of a program that this keeper has started.
    pub(crate) fn kept(tether: Arc<Tether>) -> Self {
        Tree::Keeper(Kept::new(tether))
    }
}

fn cgroups(old_call: bool) -> io::Result<Nursery> {
    if old_call {
        return Err(io::Error::other(OldCall));
    }
    Ok(Nursery::Cgroups(Arc::new(Grove::open()?)))
}

fn unavailable(kind: TreeKind) -> impl Fn(io::Error) -> io::Error {
    move |cause| io::Error::other(Unavailable { kind, cause })
}
