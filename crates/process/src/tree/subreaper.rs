//! A process tree supervised by a subreaper.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};

use crate::subreaper::{ControlMessage, ReaperHandle};

/// The server's side of a supervised tree.
#[derive(Debug)]
pub(crate) struct SubreaperTree {
    /// `None` once the tree is gone, so that an ended tree holds no descriptor.
    reaper: Mutex<Option<Arc<ReaperHandle>>>,
}

impl SubreaperTree {
    pub(crate) fn new(reaper: Arc<ReaperHandle>) -> Self {
        Self {
            reaper: Mutex::new(Some(reaper)),
        }
    }

    pub(super) fn kill(&self, leader: Pid, unreaped: bool) -> io::Result<()> {
        let Some(reaper) = &*self.reaper.lock() else {
            return Ok(());
        };
        if unreaped && !reaper.is_gone() {
            // Kill the group at once, before its processes can do anything more. The subreaper finds
            // the rest, including processes that the server is not permitted to signal.
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
        Ok(reaper.send(ControlMessage::Kill)?)
    }

    /// Sends a signal to all processes, or only to those outside the leader's process group.
    pub(super) fn signal(&self, signal: Signal, outside_group_only: bool) -> io::Result<()> {
        let message = ControlMessage::Signal {
            number: signal.as_raw(),
            outside_group_only,
        };
        match &*self.reaper.lock() {
            Some(reaper) => Ok(reaper.send(message)?),
            None => Ok(()),
        }
    }

    pub(super) fn is_alive(&self, unreaped: bool) -> bool {
        self.release_if_empty();
        match &*self.reaper.lock() {
            Some(reaper) => !(unreaped && reaper.exited_alone()),
            None => false,
        }
    }

    /// Whether the leader's pid cannot have been reused. If the subreaper was killed, the factory
    /// reaps the leader.
    pub(super) fn leader_is_ours(&self) -> bool {
        let reaper = self.reaper.lock();
        reaper.as_ref().is_some_and(|reaper| !reaper.is_gone())
    }

    /// Lets the subreaper reap the leader. If the tree is empty the subreaper can be reused.
    pub(super) fn leader_reaped(&self) {
        let mut slot = self.reaper.lock();
        let Some(reaper) = &*slot else { return };
        if reaper.exited_alone() {
            reaper.set_reusable();
            *slot = None;
        } else {
            // If this fails, the zombie stays until the handle is dropped.
            let _ = reaper.send(ControlMessage::Reap);
        }
    }

    pub(super) fn release_if_empty(&self) {
        let mut slot = self.reaper.lock();
        if slot.as_ref().is_some_and(|reaper| reaper.is_gone()) {
            *slot = None;
        }
    }
}

impl Drop for SubreaperTree {
    fn drop(&mut self) {
        if let Some(reaper) = self.reaper.get_mut().take() {
            reaper.abandon();
        }
    }
}
