//! Starts in a session: reserving and filling slots.

use tokio::sync::futures::Notified;

use super::{Reservation, Session, slots::ProcessSlots};
use crate::{Process, Start, StartError};

impl Session {
    /// Reserves a slot for a process that is about to start.
    pub fn reserve(&self, start: &Start) -> Result<Reservation, StartError> {
        let mut state = self.state();
        if state.lease.has_ended() {
            return Err(StartError::SessionEnded);
        }
        let active = self.shared.activity.track();
        let about = state.slots.reserve(start, active)?;
        Ok(Reservation::new(self.clone(), about))
    }

    /// Puts a process into its slot. Detaches it if the session has no owner, so that it does
    /// not wait for one.
    pub(super) fn fill(&self, id: &str, process: &Process) -> Result<(), StartError> {
        let mut state = self.state();
        state.slots.fill(id, process)?;
        if !state.lease.has_owner() {
            process.detach(state.delivery);
        }
        Ok(())
    }

    pub(super) fn with_slots<T>(&self, work: impl FnOnce(&mut ProcessSlots) -> T) -> T {
        work(&mut self.state().slots)
    }

    pub(super) fn notify_start_finished(&self) {
        self.shared.start_finished.notify_waiters();
    }

    pub(super) fn start_finished(&self) -> Notified<'_> {
        self.shared.start_finished.notified()
    }

    /// Whether a process with this id is starting.
    #[must_use]
    pub fn is_starting(&self, id: &str) -> bool {
        self.state().slots.is_starting(id)
    }

    /// Waits until no process with this id is starting.
    pub async fn wait_started(&self, id: &str) {
        loop {
            let finished = self.start_finished();
            if !self.is_starting(id) {
                return;
            }
            finished.await;
        }
    }
}
