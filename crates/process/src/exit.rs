//! The exit status of a child, and waiting for it.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus};
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;

use crate::control::Control;
use crate::spawn_queue::{SpawnQueue, UnwatchedChild};
use crate::subreaper::ReaperHandle;

/// The exit status of a child.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// Exited with this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// Unknown: another part of the program reaped the child, or its subreaper was killed.
    Lost,
}

impl Exit {
    /// Maps the status to one number: 128+N for signal N, and -1 if it is lost.
    pub fn code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
            Exit::Lost => -1,
        }
    }

    fn from_status(status: &WaitIdStatus) -> Self {
        let code = status.exit_status().map(Exit::Code);
        let signal = || status.terminating_signal().map(Exit::Signal);
        code.or_else(signal).unwrap_or(Exit::Lost)
    }
}

/// Waits for the exit of one child and reaps it. If dropped early the child keeps running, and a
/// spawner thread reaps it when it exits.
#[derive(Debug)]
pub struct ExitWatch {
    control: Control,
    /// `None` once the child is reaped.
    source: Option<AsyncFd<ExitSource>>,
    exit: Option<Exit>,
    /// Takes the child if this is dropped early.
    queue: Arc<SpawnQueue>,
}

impl ExitWatch {
    pub(crate) fn new(
        control: Control,
        source: AsyncFd<ExitSource>,
        queue: Arc<SpawnQueue>,
    ) -> Self {
        Self {
            control,
            source: Some(source),
            exit: None,
            queue,
        }
    }

    /// Resolves once the child has exited. It stays a zombie, so that its pid and process group id
    /// are not reused, until [`ExitWatch::reap`]. Cancel safe.
    pub async fn wait(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let exit = match &self.source {
            Some(source) => wait_for_exit(source).await,
            None => Exit::Lost,
        };
        self.exit = Some(exit);
        exit
    }

    /// Reaps the child: from now on no signal is sent to its pid or process group. Does nothing while
    /// the child runs.
    pub fn reap(&mut self) {
        let Some(source) = &self.source else { return };
        let Some(exit) = self.control.reap(source.get_ref()) else {
            return;
        };
        self.exit.get_or_insert(exit);
        self.source = None;
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        self.reap();
        if let Some(source) = self.source.take() {
            self.queue.reap_later(UnwatchedChild {
                source: source.into_inner(),
                control: self.control.clone(),
            });
        }
    }
}

async fn wait_for_exit(source: &AsyncFd<ExitSource>) -> Exit {
    loop {
        let Ok(mut ready) = source.readable().await else {
            // The runtime is shutting down, and all tasks with it.
            return Exit::Lost;
        };
        match source.get_ref().status(WaitIdOptions::NOWAIT) {
            Some(exit) => {
                ready.retain_ready();
                return exit;
            }
            None => ready.clear_ready(),
        }
    }
}

/// A descriptor that is readable once the child has exited.
#[derive(Debug)]
pub(crate) enum ExitSource {
    /// For a direct child.
    Pidfd(OwnedFd),
    /// For a child of a subreaper, which reports the status. Shared with the tree.
    Subreaper(Arc<ReaperHandle>),
}

impl ExitSource {
    /// Returns the status, or `None` while the child runs. A direct child is reaped unless the options
    /// include [`WaitIdOptions::NOWAIT`]; a subreaper reaps only on request.
    pub(crate) fn status(&self, options: WaitIdOptions) -> Option<Exit> {
        match self {
            ExitSource::Pidfd(pidfd) => wait_pidfd(pidfd, WaitIdOptions::NOHANG | options),
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

/// Waits for a child and reaps it. With [`WaitIdOptions::NOWAIT`] it stays a zombie; with
/// [`WaitIdOptions::NOHANG`] this does not block, and returns `None` while the child runs.
pub(crate) fn wait_pidfd(pidfd: impl AsFd, options: WaitIdOptions) -> Option<Exit> {
    let child = WaitId::PidFd(pidfd.as_fd());
    loop {
        match rustix::process::waitid(child.clone(), WaitIdOptions::EXITED | options) {
            Ok(status) => return status.as_ref().map(Exit::from_status),
            Err(Errno::INTR) => {}
            // Another part of the program reaped it, or the kernel did because SIGCHLD is ignored.
            Err(_) => return Some(Exit::Lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_maps_to_one_number() {
        assert_eq!(Exit::Code(3).code(), 3);
        assert_eq!(Exit::Signal(9).code(), 137);
        assert_eq!(Exit::Lost.code(), -1);
    }
}
