//! Sources of a child's exit status.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::process::WaitIdOptions;

use crate::leader::{self, WaitResult};
use crate::subreaper::ReaperHandle;

/// A descriptor that is readable once the child has exited.
#[derive(Debug)]
pub(crate) enum ExitSource {
    /// For a direct child.
    Pidfd(OwnedFd),
    /// For a child of a subreaper, which reports the status. Shared with the tree.
    Subreaper(Arc<ReaperHandle>),
}

impl ExitSource {
    /// Returns the status and leaves the child a zombie.
    pub(crate) fn peek(&self) -> WaitResult {
        match self {
            ExitSource::Pidfd(pidfd) => {
                leader::wait_pidfd(pidfd, WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
            }
            ExitSource::Subreaper(reaper) => reaper.exit_status(),
        }
    }

    /// Returns the status and reaps a direct child. A subreaper reaps only on request.
    pub(crate) fn reap(&self) -> WaitResult {
        match self {
            ExitSource::Pidfd(pidfd) => leader::wait_pidfd(pidfd, WaitIdOptions::NOHANG),
            ExitSource::Subreaper(reaper) => reaper.exit_status(),
        }
    }
}

impl AsRawFd for ExitSource {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            ExitSource::Pidfd(pidfd) => pidfd.as_raw_fd(),
            ExitSource::Subreaper(reaper) => reaper.as_raw_fd(),
        }
    }
}
