//! The slots of a session: one per process id.

use std::{collections::HashMap, sync::Arc};

use super::Session;
use crate::{About, ActivityGuard, Process, ReadError, Start, StartError};

#[derive(Default)]
pub(super) struct ProcessSlots {
    slots: HashMap<String, Occupied>,
    /// How many slots were ever reserved.
    reserved: u64,
}

/// An occupied slot.
struct Occupied {
    slot: Slot,
    /// A process counts as active while it has a slot.
    _active: ActivityGuard,
}

pub(super) enum Slot {
    /// The child does not exist yet.
    Starting { about: Arc<About>, cancelled: bool },
    /// The child exists or has exited.
    Live(Process),
}

impl ProcessSlots {
    /// Reserves an id for a process that is about to start.
    pub(super) fn reserve(
        &mut self,
        start: &Start,
        active: ActivityGuard,
    ) -> Result<Arc<About>, StartError> {
        if self.slots.contains_key(&start.id) {
            return Err(StartError::Exists(start.id.clone()));
        }
        self.reserved += 1;
        let about = Arc::new(About::new(start, self.reserved));
        let slot = Slot::Starting {
            about: Arc::clone(&about),
            cancelled: false,
        };
        let occupied = Occupied {
            slot,
            _active: active,
        };
        self.slots.insert(start.id.clone(), occupied);
        Ok(about)
    }

    /// Puts the process into its reserved slot.
    pub(super) fn fill(&mut self, id: &str, process: &Process) -> Result<(), StartError> {
        match self.slot_mut(id) {
            Some(
                slot @ Slot::Starting {
                    cancelled: false, ..
                },
            ) => {
                *slot = Slot::Live(process.clone());
                Ok(())
            }
            Some(Slot::Starting {
                cancelled: true, ..
            }) => {
                self.slots.remove(id);
                Err(StartError::Cancelled(id.to_owned()))
            }
            // The session ended in the meantime, with all its slots.
            Some(Slot::Live(_)) | None => Err(StartError::SessionEnded),
        }
    }

    fn slot(&self, id: &str) -> Option<&Slot> {
        self.slots.get(id).map(|occupied| &occupied.slot)
    }

    fn slot_mut(&mut self, id: &str) -> Option<&mut Slot> {
        self.slots.get_mut(id).map(|occupied| &mut occupied.slot)
    }

    /// Frees the slot of exactly this start, if it was not filled. The id may belong to another
    /// start by now.
    fn free(&mut self, reserved: &Arc<About>) {
        if matches!(self.slot(&reserved.id), Some(Slot::Starting { about, .. }) if Arc::ptr_eq(about, reserved))
        {
            self.slots.remove(&reserved.id);
        }
    }

    /// Frees the slot of a failed start. Checks for a cancellation in the same step, so that the
    /// result of the start and the response to the terminate request agree.
    fn fail(&mut self, reserved: &Arc<About>, error: StartError) -> StartError {
        let error = match self.slot(&reserved.id) {
            Some(Slot::Starting {
                cancelled: true, ..
            }) => StartError::Cancelled(reserved.id.clone()),
            _ => error,
        };
        self.free(reserved);
        error
    }

    pub(super) fn find(&self, id: &str) -> Result<&Process, ReadError> {
        match self.slot(id) {
            Some(Slot::Live(process)) => Ok(process),
            Some(Slot::Starting { .. }) => Err(ReadError::Starting(id.to_owned())),
            None => Err(ReadError::Unknown(id.to_owned())),
        }
    }

    /// Cancels a start. Returns whether there was one.
    pub(super) fn cancel(&mut self, id: &str) -> bool {
        match self.slot_mut(id) {
            Some(Slot::Starting { cancelled, .. }) => {
                *cancelled = true;
                true
            }
            _ => false,
        }
    }

    fn check_not_cancelled(&self, id: &str) -> Result<(), StartError> {
        match self.slot(id) {
            Some(Slot::Starting {
                cancelled: false, ..
            }) => Ok(()),
            Some(Slot::Starting {
                cancelled: true, ..
            }) => Err(StartError::Cancelled(id.to_owned())),
            Some(Slot::Live(_)) | None => Err(StartError::SessionEnded),
        }
    }

    pub(super) fn is_starting(&self, id: &str) -> bool {
        matches!(self.slot(id), Some(Slot::Starting { .. }))
    }

    /// Frees the slot of exactly this process. Returns whether it had one.
    pub(super) fn forget(&mut self, process: &Process) -> bool {
        let same = matches!(self.slot(process.id()), Some(Slot::Live(live)) if live.is(process));
        if same {
            self.slots.remove(process.id());
        }
        same
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &Process> {
        self.slots
            .values()
            .filter_map(|occupied| match &occupied.slot {
                Slot::Live(process) => Some(process),
                Slot::Starting { .. } => None,
            })
    }

    pub(super) fn starting(&self) -> impl Iterator<Item = &Arc<About>> {
        self.slots
            .values()
            .filter_map(|occupied| match &occupied.slot {
                Slot::Starting { about, .. } => Some(about),
                Slot::Live(_) => None,
            })
    }
}

/// A reserved slot. Dropping it frees the slot unless it was filled.
pub struct Reservation {
    session: Session,
    pub(crate) about: Arc<About>,
}

impl Reservation {
    pub(super) fn new(session: Session, about: Arc<About>) -> Self {
        Reservation { session, about }
    }

    /// Puts the process into its slot. Fails if the start was cancelled; the caller must then kill
    /// the child.
    pub(crate) fn fill(self, process: &Process) -> Result<(), StartError> {
        self.session.fill(&self.about.id, process)
    }

    /// Frees the slot and returns the error to report: a cancellation takes precedence over
    /// other errors.
    pub(crate) fn fail(self, error: StartError) -> StartError {
        self.session
            .with_slots(|slots| slots.fail(&self.about, error))
    }

    /// Fails if the start was cancelled or the session has ended.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        self.session
            .with_slots(|slots| slots.check_not_cancelled(&self.about.id))
    }

    /// Waits until the start is cancelled or the session ends.
    pub(crate) async fn cancelled(&self) -> StartError {
        loop {
            let changed = self.session.start_finished();
            if let Err(error) = self.check() {
                return error;
            }
            changed.await;
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.session.with_slots(|slots| slots.free(&self.about));
        self.session.notify_start_finished();
    }
}
