//! How a child ended, and waiting for it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::process::{WaitIdOptions, WaitIdStatus};
use tokio::io::unix::AsyncFd;

use crate::leader::{self, Ended, Leader};
use crate::queue::{Orphan, Queue};

/// How a child ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody knows: somebody else took the status.
    Lost,
}

impl Exit {
    /// One number for all of it: 128+N for signal N, and -1 for a status that is lost.
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

/// Waits for the end of one child and gives its number back. Dropping it early leaves the child
/// running; a spawner thread reaps it when it ends.
#[derive(Debug)]
pub struct ExitWatch {
    leader: Arc<Leader>,
    /// Gone once the child is reaped.
    pidfd: Option<AsyncFd<OwnedFd>>,
    exit: Option<Exit>,
    /// Takes the child when this is dropped too early.
    queue: Arc<Queue>,
}

impl ExitWatch {
    pub(crate) fn new(leader: Arc<Leader>, pidfd: AsyncFd<OwnedFd>, queue: Arc<Queue>) -> Self {
        Self {
            leader,
            pidfd: Some(pidfd),
            exit: None,
            queue,
        }
    }

    /// Resolves once the child has ended. It stays a zombie, so that its number and its group's
    /// are nobody else's, until [`ExitWatch::reap`]. May be cancelled and called again.
    pub async fn wait(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let exit = match &self.pidfd {
            Some(pidfd) => ended(pidfd).await,
            None => Exit::Lost,
        };
        self.exit = Some(exit);
        exit
    }

    /// Gives the child's number back: from now on nothing is sent to it or to its group. Does
    /// nothing while the child runs.
    pub fn reap(&mut self) {
        let Some(pidfd) = &self.pidfd else { return };
        match self.leader.reap(pidfd.as_fd()) {
            Ended::NotYet => return,
            Ended::With(status) => {
                self.exit.get_or_insert(Exit::from_status(&status));
            }
            Ended::Lost => {
                self.exit.get_or_insert(Exit::Lost);
            }
        }
        self.pidfd = None;
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        self.reap();
        if let Some(pidfd) = self.pidfd.take() {
            self.queue.adopt(Orphan {
                pidfd: pidfd.into_inner(),
                leader: Arc::clone(&self.leader),
            });
        }
    }
}

async fn ended(pidfd: &AsyncFd<OwnedFd>) -> Exit {
    loop {
        let Ok(mut ready) = pidfd.readable().await else {
            // The runtime is going down, and with it everybody who could want to know.
            return Exit::Lost;
        };
        match leader::ask(pidfd, WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT) {
            Ended::With(status) => {
                ready.retain_ready();
                return Exit::from_status(&status);
            }
            Ended::Lost => return Exit::Lost,
            Ended::NotYet => ready.clear_ready(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_for_all() {
        assert_eq!(Exit::Code(3).code(), 3);
        assert_eq!(Exit::Signal(9).code(), 137);
        assert_eq!(Exit::Lost.code(), -1);
    }
}
