//! Picks a kind of process tree for a spawner, and creates the trees.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use outpost_types::{EndedProcess, LimitName, ResourceLimits, TreeKind};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::Tree;
use super::cgroup::Cgroup;
use super::cgroup_root::{CgroupRoot, RemovedCgroups};
use super::controllers::{self, LimitedRoot};
use super::group::Group;
use crate::spawner::SpawnerOptions;
use crate::subreaper::{ReaperHandle, ReaperPool};
use crate::sys::clone_mode::CloneMode;

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
    Cgroups {
        /// Replaced if another process removes its directory.
        root: Mutex<Arc<CgroupRoot>>,
        /// For cgroups with limits. Opened when it is needed.
        limited: Mutex<Option<LimitedRoot>>,
        /// Shared with all roots.
        removed: Arc<RemovedCgroups>,
        /// See [`SpawnerOptions::moves_own_cgroup`].
        moves_own: bool,
    },
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
        options: &SpawnerOptions,
        clone_mode: CloneMode,
    ) -> io::Result<(Self, Vec<EndedProcess>)> {
        let subreapers = || match &options.subreaper {
            Some(command) => ReaperPool::open(command, clone_mode, options.adopts_orphans)
                .map(TreeFactory::Subreapers),
            None => Err(io::Error::other(Unavailable::NoCommand)),
        };
        let cgroups = || {
            if clone_mode.legacy_clone {
                return Err(io::Error::other(Unavailable::NoClone3));
            }
            let removed = Arc::default();
            let (root, ended) = CgroupRoot::open(&removed)?;
            let factory = TreeFactory::Cgroups {
                root: Mutex::new(Arc::new(root)),
                limited: Mutex::default(),
                removed,
                moves_own: options.moves_own_cgroup,
            };
            Ok((factory, ended))
        };
        let none_ended = |factory| (factory, Vec::new());
        match options.trees {
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
            TreeFactory::Cgroups { root, .. } => {
                let (cgroup, directory) = create_cgroup(root)?;
                Ok(NewTree::Direct(Tree::Cgroup(cgroup), Some(directory)))
            }
            TreeFactory::Subreapers(pool) => Ok(NewTree::ViaSubreaper(pool.get()?)),
            TreeFactory::Groups => Ok(NewTree::Direct(Tree::Group(Group::default()), None)),
        }
    }

    /// Whether one of its trees is, or was, the cgroup with this id.
    pub(crate) fn owns_cgroup(&self, id: u64) -> io::Result<bool> {
        let TreeFactory::Cgroups {
            root,
            limited,
            removed,
            ..
        } = self
        else {
            return Ok(false);
        };
        let root = Arc::clone(&root.lock());
        let limited = limited.lock().as_ref().and_then(LimitedRoot::directory);
        for root in [Some(root), limited].into_iter().flatten() {
            if root.contains(id)? {
                return Ok(true);
            }
        }
        // Asked last: a cgroup may have been removed while the existing cgroups were listed.
        Ok(removed.contains(id))
    }

    /// Creates a cgroup with the limits that need one.
    pub(crate) fn create_limited(&self, limits: &ResourceLimits) -> io::Result<NewTree> {
        let TreeFactory::Cgroups {
            limited,
            removed,
            moves_own,
            ..
        } = self
        else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut limited = limited.lock();
        let open = || LimitedRoot::open(*moves_own, removed);
        let (cgroup, directory) = match limited.get_or_insert_with(open).create(limits) {
            Err(error) if is_removed(&error) => limited.insert(open()).create(limits)?,
            created => created?,
        };
        Ok(NewTree::Direct(Tree::Cgroup(cgroup), Some(directory)))
    }

    /// The limits that cannot be enforced, with the reason and the remedy.
    pub(crate) fn unenforceable_limits(&self) -> BTreeMap<LimitName, String> {
        match self {
            TreeFactory::Cgroups {
                limited,
                removed,
                moves_own,
                ..
            } => {
                let mut limited = limited.lock();
                let root = limited.get_or_insert_with(|| LimitedRoot::open(*moves_own, removed));
                root.unenforceable.clone()
            }
            TreeFactory::Subreapers(_) | TreeFactory::Groups => {
                controllers::unenforceable_without_cgroups(self.kind())
            }
        }
    }

    pub(crate) fn kind(&self) -> TreeKind {
        match self {
            TreeFactory::Cgroups { .. } => TreeKind::Cgroup,
            TreeFactory::Subreapers(_) => TreeKind::Subreaper,
            TreeFactory::Groups => TreeKind::Group,
        }
    }
}

/// Creates a cgroup, in a new directory if the current one was removed.
fn create_cgroup(root: &Mutex<Arc<CgroupRoot>>) -> io::Result<(Cgroup, OwnedFd)> {
    let current = Arc::clone(&root.lock());
    match Cgroup::create(&current) {
        Err(error) if is_removed(&error) => {
            let mut root = root.lock();
            if Arc::ptr_eq(&root, &current) {
                *root = Arc::new(current.create_again()?);
            }
            Cgroup::create(&root)
        }
        created => created,
    }
}

/// Whether a cgroup or its parent was removed.
fn is_removed(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
}

fn unavailable(kind: TreeKind) -> impl Fn(io::Error) -> io::Error {
    move |cause| io::Error::other(Unavailable::Requested { kind, cause })
}
