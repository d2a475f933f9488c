//! Which kinds of tree there are, and which of them a spawner is to use.

use std::fmt;
use std::io;

/// Which kinds of tree a spawner may use.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum TreeChoice {
    /// The best this host has: cgroups, else keepers if there is a command for them, else groups.
    #[default]
    Auto,
    /// Cgroups or nothing.
    Cgroup,
    /// Keepers, even where there are cgroups, or nothing.
    Keeper,
    /// Process groups, even where there is better.
    Group,
}

/// How a tree is kept together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// A cgroup for each process: nothing leaves it, and all of it dies at once.
    Cgroup,
    /// A process of our own above each one, which inherits every orphan and can name and kill all
    /// of its descendants. It ends them too when this program is gone.
    Keeper,
    /// The process group, its session, and what `/proc` tells about descendants. One that left its
    /// session and lost its parent can't be found.
    Group,
}

/// Trees of a kind that was asked for can't be kept on this host.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep process trees by {kind} here: {cause}")]
pub(super) struct Unavailable {
    pub(super) kind: TreeKind,
    /// Not a `source`: the message names it already.
    pub(super) cause: io::Error,
}

/// There can be no keepers without it.
#[derive(Debug, thiserror::Error)]
#[error("there is no keeper command")]
pub(super) struct NoCommand;

/// Only the newer clone puts a child into its cgroup before it runs.
#[derive(Debug, thiserror::Error)]
#[error("clone3 is not allowed")]
pub(super) struct OldCall;

impl fmt::Display for TreeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TreeKind::Cgroup => "cgroup",
            TreeKind::Keeper => "keeper",
            TreeKind::Group => "group",
        })
    }
}
