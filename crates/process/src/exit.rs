//! The exit status of a child, and waiting for it.

use std::sync::Arc;

use rustix::process::WaitIdStatus;
use tokio::io::unix::AsyncFd;

use crate::exit_source::ExitSource;
use crate::leader::{Leader, WaitResult};
use crate::queue::{Queue, UnwatchedChild};

/// The exit status of a child.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
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

    pub(crate) fn from_status(status: &WaitIdStatus) -> Self {
        let code = status.exit_status().map(Exit::Code);
        let signal = || status.terminating_signal().map(Exit::Signal);
        code.or_else(signal).unwrap_or(Exit::Lost)
    }
}

/// Waits for the exit of one child and reaps it. If dropped early the child keeps running, and a
/// spawner thread reaps it when it exits.
#[derive(Debug)]
pub struct ExitWatch {
    leader: Arc<Leader>,
    /// `None` once the child is reaped.
    source: Option<AsyncFd<ExitSource>>,
    exit: Option<Exit>,
    /// Takes the child if this is dropped early.
    queue: Arc<Queue>,
}

impl ExitWatch {
    pub(crate) fn new(leader: Arc<Leader>, source: AsyncFd<ExitSource>, queue: Arc<Queue>) -> Self {
        Self {
            leader,
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
        match self.leader.reap(source.get_ref()) {
            WaitResult::Running => return,
            WaitResult::Exited(exit) => {
                self.exit.get_or_insert(exit);
            }
            WaitResult::Lost => {
                self.exit.get_or_insert(Exit::Lost);
            }
        }
        self.source = None;
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        self.reap();
        if let Some(source) = self.source.take() {
            self.queue.reap_later(UnwatchedChild {
                source: source.into_inner(),
                leader: Arc::clone(&self.leader),
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
        match source.get_ref().peek() {
            WaitResult::Exited(exit) => {
                ready.retain_ready();
                return exit;
            }
            WaitResult::Lost => return Exit::Lost,
            WaitResult::Running => ready.clear_ready(),
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
