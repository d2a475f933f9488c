//! What can be done to a process, whichever place it is in.

use std::time::Duration;

use bytes::Bytes;
use outpost_protocol::{SignalName, Size};

use crate::Pending;

/// How a process is to be ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminate {
    /// How long it is asked to end before it is made to; none leaves that to
    /// what its start said. Beyond the released servers: `terminateTree`.
    pub grace: Option<Duration>,
    /// If it has exited already, kill what it left running. Beyond the
    /// released servers: `terminateTree`.
    pub tree: bool,
}

/// The control over one process.
pub(crate) trait Reins: Send + Sync {
    /// Queues bytes for its input, and ends the input after them if asked to.
    /// Called by one at a time.
    fn write(&self, bytes: Bytes, end: bool) -> Pending<'_, ()>;

    fn signal(&self, signal: SignalName) -> Pending<'_, ()>;

    fn resize(&self, size: Size) -> Pending<'_, ()>;

    fn terminate(&self, how: Terminate) -> Pending<'_, bool>;

    /// Nobody holds it any more; `end` says whether it is to end then. Called
    /// from destructors: it doesn't wait.
    fn let_go(&self, end: bool);
}
