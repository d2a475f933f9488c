//! Starts of a session, from the reserved name to the filled slot.

use tokio::sync::futures::Notified;

use super::{Reservation, Session, slots::Slots};
use crate::{Process, Start, StartError};

impl Session {
    /// Reserves a name for a process that is about to start.
    pub fn reserve(&self, start: &Start) -> Result<Reservation, StartError> {
        let mut inside = self.inside();
        if inside.lease.has_ended() {
            return Err(StartError::SessionEnded);
        }
        let presence = self.shared.attendance.enter();
        let about = inside.slots.reserve(start, presence)?;
        Ok(Reservation::new(self.clone(), about))
    }

    /// Puts a process into its slot. It waits for an owner; where there is none
    /// it must not wait for one in vain.
    pub(super) fn fill(&self, id: &str, process: &Process) -> Result<(), StartError> {
        let mut inside = self.inside();
        inside.slots.fill(id, process)?;
        if !inside.lease.has_owner() {
            process.detach(inside.delivery);
        }
        Ok(())
    }

    pub(super) fn with_slots<T>(&self, work: impl FnOnce(&mut Slots) -> T) -> T {
        work(&mut self.inside().slots)
    }

    pub(super) fn start_settled(&self) {
        self.shared.settled.notify_waiters();
    }

    pub(super) fn next_settled(&self) -> Notified<'_> {
        self.shared.settled.notified()
    }

    /// Whether a start of this name is under way.
    #[must_use]
    pub fn is_starting(&self, id: &str) -> bool {
        self.inside().slots.is_starting(id)
    }

    /// Waits until no start of this name is under way.
    pub async fn settled(&self, id: &str) {
        loop {
            let settled = self.next_settled();
            if !self.is_starting(id) {
                return;
            }
            settled.await;
        }
    }
}
