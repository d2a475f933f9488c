//! Operations on a process that each executor implements.

use std::time::Duration;

use bytes::Bytes;
use outpost_protocol::{Signal, TerminalSize};

use crate::Pending;

/// Options for [`Process::terminate_with`](crate::Process::terminate_with).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terminate {
    /// Time between the request to terminate and the kill. `None` uses the grace period given at
    /// the start of the process. A server must announce `terminateTree`.
    pub grace: Option<Duration>,
    /// Whether to kill leftover processes of the tree if the process has already exited. A server
    /// must announce `terminateTree`.
    pub tree: bool,
}

impl Terminate {
    /// Terminates with the process's own grace period.
    #[must_use]
    pub fn new() -> Self {
        Terminate::default()
    }

    /// Sets the time between the request to terminate and the kill.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Also kills leftover processes of the tree if the process has already exited.
    #[must_use]
    pub fn tree(mut self) -> Self {
        self.tree = true;
        self
    }
}

/// Controls one process.
pub(crate) trait ProcessBackend: Send + Sync {
    /// Queues bytes for standard input and, if `end` is set, closes it after them. The caller
    /// makes one call at a time.
    fn write(&self, bytes: Bytes, end: bool) -> Pending<'_, ()>;

    fn signal(&self, signal: Signal) -> Pending<'_, ()>;

    fn resize(&self, size: TerminalSize) -> Pending<'_, ()>;

    /// Terminates the process tree. Returns whether the process was running.
    fn terminate(&self, how: Terminate) -> Pending<'_, bool>;

    /// Handles the drop of the last handle. `terminate` says whether to terminate the process.
    /// Called from destructors: must not block.
    fn release(&self, terminate: bool);
}
