//! The server's side of a process tree that a subreaper supervises.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::Pid;

use super::handle::ReaperHandle;
use super::message::ControlMessage;
use super::orphans::Orphans;

/// The server's side of a supervised tree.
#[derive(Debug)]
pub(crate) struct SubreaperTree {
    leader: Pid,
    /// `None` once the subreaper is gone, so that an ended tree holds no descriptor.
    reaper: Mutex<Option<Arc<ReaperHandle>>>,
    /// Set while processes of a killed subreaper are left.
    orphans: Mutex<Option<Orphans>>,
}

impl SubreaperTree {
    pub(crate) fn new(leader: Pid, reaper: Arc<ReaperHandle>) -> Self {
        Self {
            leader,
            reaper: Mutex::new(Some(reaper)),
            orphans: Mutex::new(None),
        }
    }

    /// Kills all processes. Continues a subreaper that was stopped; if it was killed, kills its
    /// processes without it.
    pub(crate) fn kill(&self) -> io::Result<()> {
        self.release_if_empty();
        if let Some(reaper) = &*self.reaper.lock() {
            let sent = reaper.send(ControlMessage::Kill);
            reaper.resume();
            sent?;
        }
        if let Some(orphans) = &*self.orphans.lock() {
            orphans.kill();
        }
        Ok(())
    }

    /// Sends a message, unless the tree is gone.
    pub(crate) fn send(&self, message: ControlMessage) -> io::Result<()> {
        if let Some(reaper) = &*self.reaper.lock() {
            reaper.send(message)?;
        }
        Ok(())
    }

    /// Whether a process of the tree is left. With `unreaped`, a leader that has exited alone does
    /// not count.
    pub(crate) fn is_alive(&self, unreaped: bool) -> bool {
        self.release_if_empty();
        if let Some(reaper) = &*self.reaper.lock() {
            return !(unreaped && reaper.exited_alone());
        }
        let mut orphans = self.orphans.lock();
        let alive = orphans.as_mut().is_some_and(Orphans::is_alive);
        if !alive {
            *orphans = None;
        }
        alive
    }

    /// Whether the leader's pid cannot have been reused. If the subreaper was killed, the factory
    /// reaps the leader.
    pub(crate) fn leader_is_ours(&self) -> bool {
        let reaper = self.reaper.lock();
        reaper.as_ref().is_some_and(|reaper| !reaper.is_gone())
    }

    /// Lets the subreaper reap the leader. If the tree is empty the subreaper can be reused. Kills what a
    /// killed subreaper has left, because the factory may have been killed too.
    pub(crate) fn reap_leader(&self) {
        self.release_if_empty();
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

    pub(crate) fn release_if_empty(&self) {
        let mut slot = self.reaper.lock();
        if let Some(reaper) = &*slot
            && reaper.is_gone()
        {
            if !reaper.last_reports().tree_gone {
                let orphans = Orphans::find(reaper, self.leader);
                orphans.kill();
                *self.orphans.lock() = Some(orphans);
            }
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
