//! By what the end of a child is known.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::process::WaitIdOptions;

use crate::keeper::Tether;
use crate::leader::{self, Ended};

/// A descriptor that becomes readable when the child ends.
#[derive(Debug)]
pub(crate) enum Watch {
    /// The child is ours.
    Pidfd(OwnedFd),
    /// The child is its keeper's, who says how it ended. The tree holds it too.
    Tether(Arc<Tether>),
}

impl Watch {
    /// Whether and how it has ended; it stays a zombie.
    pub(crate) fn look(&self) -> Ended {
        match self {
            Watch::Pidfd(pidfd) => {
                leader::ask(pidfd, WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
            }
            Watch::Tether(tether) => tether.ended(),
        }
    }

    /// The same, for the last time. The number of a child that is ours is free from then on; a
    /// keeper has to be told.
    pub(crate) fn take(&self) -> Ended {
        match self {
            Watch::Pidfd(pidfd) => leader::ask(pidfd, WaitIdOptions::NOHANG),
            Watch::Tether(tether) => tether.ended(),
        }
    }
}

impl AsRawFd for Watch {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Watch::Pidfd(pidfd) => pidfd.as_raw_fd(),
            Watch::Tether(tether) => tether.as_raw_fd(),
        }
    }
}
