//! How a child ended, and waiting for it.

use std::sync::Arc;

use rustix::process::WaitIdStatus;
use tokio::io::unix::AsyncFd;

use crate::leader::{Ended, Leader};
use crate::queue::{Orphan, Queue};
use crate::watch::Watch;

/// How a child ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody knows: somebody else took the status, or killed the keeper that would have told.
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

    pub(crate) fn from_status(status: &WaitIdStatus) -> Self {
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
    watch: Option<AsyncFd<Watch>>,
    exit: Option<Exit>,
    /// Takes the child when this is dropped too early.
    queue: Arc<Queue>,
}

impl ExitWatch {
    pub(crate) fn new(leader: Arc<Leader>, watch: AsyncFd<Watch>, queue: Arc<Queue>) -> Self {
        Self {
            leader,
            watch: Some(watch),
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
        let exit = match &self.watch {
            Some(watch) => ended(watch).await,
            None => Exit::Lost,
        };
        self.exit = Some(exit);
        exit
    }

    /// Gives the child's number back: from now on nothing is sent to it or to its group. Does
    /// nothing while the child runs.
    pub fn reap(&mut self) {
        let Some(watch) = &self.watch else { return };
        match self.leader.reap(watch.get_ref()) {
            Ended::NotYet => return,
            Ended::With(exit) => {
                self.exit.get_or_insert(exit);
            }
            Ended::Lost => {
                self.exit.get_or_insert(Exit::Lost);
            }
        }
        self.watch = None;
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        self.reap();
        if let Some(watch) = self.watch.take() {
            self.queue.adopt(Orphan {
                watch: watch.into_inner(),
                leader: Arc::clone(&self.leader),
            });
        }
    }
}

async fn ended(watch: &AsyncFd<Watch>) -> Exit {
    loop {
        let Ok(mut ready) = watch.readable().await else {
            // The runtime is going down, and with it everybody who could want to know.
            return Exit::Lost;
        };
        match watch.get_ref().look() {
            Ended::With(exit) => {
                ready.retain_ready();
                return exit;
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
