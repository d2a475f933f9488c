//! An observer of a process, whichever connection its session is attached to.

use std::fmt::Debug;

use outpost_types::{ErrorKind, NetworkDecision};

use crate::{Exit, Process};

/// Observes a process from its start to its exit, even while its session is detached. Is called from the
/// tasks of the process, and must not block.
pub trait ProcessObserver: Debug + Send + Sync {
    /// The process could not be started: there is no child whose exit will be seen.
    fn not_started(&self, error: ErrorKind);

    /// The process has exited.
    fn exited(&self, process: &Process, exit: &Exit);

    /// The proxy of the process has made a decision.
    fn network_decided(&self, decision: &NetworkDecision);
}
