//! A tree that a keeper looks after.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal};

use crate::keeper::{Order, Tether};

/// What the server knows of it: whether there is still a keeper.
#[derive(Debug)]
pub(crate) struct Kept {
    /// None once nothing is left, so that what has ended holds no descriptor.
    tether: Mutex<Option<Arc<Tether>>>,
}

impl Kept {
    pub(crate) fn new(tether: Arc<Tether>) -> Self {
        let tether = Mutex::new(Some(tether));
        Self { tether }
    }

    pub(super) fn kill(&self, leader: Pid, unreaped: bool) -> io::Result<()> {
        let Some(tether) = &*self.tether() else {
            return Ok(());
        };
        if unreaped && !tether.is_gone() {
            // At once, before anybody in the group can do anything more. The keeper finds the rest,
            // and those as well who were others' to signal and aren't ours.
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
        Ok(tether.order(Order::Kill)?)
    }

    /// Sends a signal to everybody, or only to those beside the leader's group.
    pub(super) fn signal(&self, signal: Signal, beside: bool) -> io::Result<()> {
        let number = signal.as_raw();
        match &*self.tether() {
            Some(tether) => Ok(tether.order(Order::Signal { number, beside })?),
            None => Ok(()),
        }
    }

    pub(super) fn is_alive(&self, unreaped: bool) -> bool {
        self.settle();
        match &*self.tether() {
            Some(tether) => !(unreaped && tether.ended_alone()),
            None => false,
        }
    }

    /// Whether the leader's number is its own, as far as the keeper can see to that: when it was
    /// killed, its mother reaps the leader.
    pub(super) fn vouches(&self) -> bool {
        (self.tether().as_ref()).is_some_and(|tether| !tether.is_gone())
    }

    /// The leader may be reaped. If it has left nobody, the keeper has done its work.
    pub(super) fn orphaned(&self) {
        let mut tether = self.tether();
        let Some(kept) = &*tether else { return };
        if kept.ended_alone() {
            kept.set_free();
            *tether = None;
        } else {
            // If it can't be told, the zombie stays until we let go.
            let _ = kept.order(Order::Reap);
        }
    }

    pub(super) fn settle(&self) {
        let mut tether = self.tether();
        if tether.as_ref().is_some_and(|tether| tether.is_gone()) {
            *tether = None;
        }
    }

    fn tether(&self) -> MutexGuard<'_, Option<Arc<Tether>>> {
        // Nothing panics while it is changed.
        self.tether.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(tether) = self.tether().take() {
            tether.leave();
        }
    }
}
