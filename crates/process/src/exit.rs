//! The exit status of a child, and waiting for it.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use outpost_types::ResourceUsage;
use rustix::io::Errno;
use rustix::process::WaitIdOptions;
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;

use crate::control::Control;
use crate::spawn_queue::{AbandonedChild, SpawnQueue};
use crate::subreaper::ReaperHandle;
use crate::sys::waitid::{WaitFor, waitid};
use crate::tree::CpuTime;

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
}

/// The resources that a process and its descendants have used, as far as they were waited for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rusage {
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    pub(crate) max_rss_kib: u64,
}

/// The exit of a child with its usage.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExitStatus {
    pub(crate) exit: Exit,
    /// `None` if it was lost.
    pub(crate) usage: Option<Rusage>,
}

impl ExitStatus {
    pub(crate) const LOST: Self = Self {
        exit: Exit::Lost,
        usage: None,
    };
}

/// Waits for the exit of one child and reaps it. If dropped early the child keeps running, and a
/// spawner thread reaps it when it exits.
#[derive(Debug)]
pub struct ExitWatch {
    control: Control,
    /// `None` once the child is reaped.
    source: Option<AsyncFd<ExitWaiter>>,
    status: Option<ExitStatus>,
    /// Takes the child if this is dropped early.
    queue: Arc<SpawnQueue>,
}

impl ExitWatch {
    pub(crate) fn new(
        control: Control,
        source: AsyncFd<ExitWaiter>,
        queue: Arc<SpawnQueue>,
    ) -> Self {
        Self {
            control,
            source: Some(source),
            status: None,
            queue,
        }
    }

    /// Resolves once the child has exited. It stays a zombie, so that its pid and process group id
    /// are not reused, until [`ExitWatch::reap`]. Cancel safe.
    pub async fn wait(&mut self) -> Exit {
        if let Some(status) = self.status {
            return status.exit;
        }
        let status = match &self.source {
            Some(source) => wait_for_exit(source).await,
            None => ExitStatus::LOST,
        };
        self.status = Some(status);
        status.exit
    }

    /// The resources that the child has used, once [`ExitWatch::wait`] has resolved. `None` if that is
    /// unknown. Includes all descendants if it has limits that a cgroup enforces or is a wrapper, as long
    /// as the tree is not released; otherwise those that their parents have waited for.
    pub fn usage(&self) -> Option<ResourceUsage> {
        let own = self.status.and_then(|status| status.usage);
        // A wrapper's own usage is not the usage of the program.
        let own = own.filter(|_| !self.control.is_wrapper());
        let tree = self.control.tree_usage();
        let cpu = match (&tree, own) {
            (Some(tree), _) => tree.cpu,
            (None, Some(own)) => CpuTime {
                user: own.user_us,
                system: own.system_us,
            },
            (None, None) => return None,
        };
        Some(ResourceUsage {
            cpu_ms: (cpu.user + cpu.system) / 1000,
            user_ms: cpu.user / 1000,
            system_ms: cpu.system / 1000,
            max_rss_bytes: own.map(|own| own.max_rss_kib * 1024),
            peak_memory_bytes: tree.and_then(|tree| tree.peak_memory_bytes),
        })
    }

    /// Reaps the child: from now on no signal is sent to its pid or process group. Does nothing while
    /// the child runs.
    pub fn reap(&mut self) {
        let Some(source) = &self.source else { return };
        let Some(status) = self.control.reap(source.get_ref()) else {
            return;
        };
        self.status.get_or_insert(status);
        self.source = None;
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        self.reap();
        if let Some(source) = self.source.take() {
            self.queue.reap_later(AbandonedChild {
                source: source.into_inner(),
                control: self.control.clone(),
            });
        }
    }
}

async fn wait_for_exit(source: &AsyncFd<ExitWaiter>) -> ExitStatus {
    loop {
        let Ok(mut ready) = source.readable().await else {
            // The runtime is shutting down, and all tasks with it.
            return ExitStatus::LOST;
        };
        match source.get_ref().status(WaitIdOptions::NOWAIT) {
            Some(status) => {
                ready.retain_ready();
                return status;
            }
            None => ready.clear_ready(),
        }
    }
}

/// A descriptor that is readable once the child has exited.
#[derive(Debug)]
pub(crate) enum ExitWaiter {
    /// For a direct child.
    Pidfd(OwnedFd),
    /// For a child of a subreaper, which reports the status. Shared with the tree.
    Subreaper(Arc<ReaperHandle>),
}

impl ExitWaiter {
    /// Returns the status, or `None` while the child runs. A direct child is reaped unless the options
    /// include [`WaitIdOptions::NOWAIT`]; a subreaper reaps only on request.
    pub(crate) fn status(&self, options: WaitIdOptions) -> Option<ExitStatus> {
        match self {
            ExitWaiter::Pidfd(pidfd) => wait_status(pidfd, WaitIdOptions::NOHANG | options),
            ExitWaiter::Subreaper(reaper) => reaper.exit_status(),
        }
    }
}

impl AsRawFd for ExitWaiter {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            ExitWaiter::Pidfd(pidfd) => pidfd.as_raw_fd(),
            ExitWaiter::Subreaper(reaper) => reaper.as_raw_fd(),
        }
    }
}

/// Waits for a child and reaps it. With [`WaitIdOptions::NOWAIT`] it stays a zombie; with
/// [`WaitIdOptions::NOHANG`] this does not block, and returns `None` while the child runs.
pub(crate) fn wait_pidfd(pidfd: impl AsFd, options: WaitIdOptions) -> Option<Exit> {
    wait_status(pidfd, options).map(|status| status.exit)
}

/// Like [`wait_pidfd`], with the usage.
fn wait_status(pidfd: impl AsFd, options: WaitIdOptions) -> Option<ExitStatus> {
    loop {
        match waitid(
            WaitFor::Pidfd(pidfd.as_fd()),
            WaitIdOptions::EXITED | options,
        ) {
            Ok(waited) => {
                return waited.map(|waited| ExitStatus {
                    exit: waited.exit.unwrap_or(Exit::Lost),
                    usage: Some(waited.usage),
                });
            }
            Err(Errno::INTR) => {}
            // Another part of the program reaped it, or the kernel did because SIGCHLD is ignored.
            Err(_) => return Some(ExitStatus::LOST),
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
