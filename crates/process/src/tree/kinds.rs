//! The choice of a kind of process tree, and why a kind is unavailable.

use std::io;

use outpost_types::TreeKind;

/// Which kinds of tree a spawner may use.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum TreeChoice {
    /// The best kind that this host supports: cgroups, else subreapers if there is a command for
    /// them, else process groups.
    #[default]
    Auto,
    /// Cgroups only.
    Cgroup,
    /// Subreapers only, even if cgroups are available.
    Subreaper,
    /// Process groups, even if another kind is available.
    Group,
}

/// The requested kind of tree is unavailable on this host.
#[derive(Debug, thiserror::Error)]
#[error("cannot use process trees of kind {kind}: {cause}")]
pub(super) struct Unavailable {
    pub(super) kind: TreeKind,
    /// Not a `source`: the message contains it already.
    pub(super) cause: io::Error,
}

#[derive(Debug, thiserror::Error)]
#[error("no subreaper command is set")]
pub(super) struct NoCommand;

/// Only `clone3` can start a child inside a cgroup.
#[derive(Debug, thiserror::Error)]
#[error("clone3 is not allowed")]
pub(super) struct Clone3Unavailable;
