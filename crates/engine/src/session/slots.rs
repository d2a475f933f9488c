//! The places for processes in a session, by the client's names for them.

use std::{collections::HashMap, sync::Arc};

use super::Session;
use crate::{About, Presence, Process, ReadError, Start, StartError};

#[derive(Default)]
pub(super) struct Slots {
    slots: HashMap<String, Taken>,
    /// How many were ever reserved.
    reserved: u64,
}

/// A slot that somebody has.
struct Taken {
    slot: Slot,
    /// As long as it has a slot, a process counts as being there.
    _presence: Presence,
}

pub(super) enum Slot {
    /// The child doesn't exist yet.
    Starting { about: Arc<About>, cancelled: bool },
    /// It does, or did.
    Live(Process),
}

impl Slots {
    /// Takes a name for a process that is about to start.
    pub(super) fn reserve(
        &mut self,
        start: &Start,
        presence: Presence,
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
        let taken = Taken {
            slot,
            _presence: presence,
        };
        self.slots.insert(start.id.clone(), taken);
        Ok(about)
    }

    /// Puts the process where its name was reserved.
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
            // The session ended meanwhile, and its slots went with it.
            Some(Slot::Live(_)) | None => Err(StartError::SessionEnded),
        }
    }

    fn slot(&self, id: &str) -> Option<&Slot> {
        self.slots.get(id).map(|taken| &taken.slot)
    }

    fn slot_mut(&mut self, id: &str) -> Option<&mut Slot> {
        self.slots.get_mut(id).map(|taken| &mut taken.slot)
    }

    /// Frees a name that was reserved for this very start and not used. It may be
    /// somebody else's by now.
    fn free(&mut self, reserved: &Arc<About>) {
        if matches!(self.slot(&reserved.id), Some(Slot::Starting { about, .. }) if Arc::ptr_eq(about, reserved))
        {
            self.slots.remove(&reserved.id);
        }
    }

    /// Frees the name of a start that has failed. Whether it was cancelled is
    /// decided in the same step, so that its end and the answer to who cancelled
    /// it never contradict each other.
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

    /// Cancels a start; says whether there was one.
    pub(super) fn cancel(&mut self, id: &str) -> bool {
        match self.slot_mut(id) {
            Some(Slot::Starting { cancelled, .. }) => {
                *cancelled = true;
                true
            }
            _ => false,
        }
    }

    fn is_cancelled(&self, id: &str) -> Result<(), StartError> {
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

    /// Frees the slot of this very process; says whether it had one.
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
        self.slots.values().filter_map(|taken| match &taken.slot {
            Slot::Live(process) => Some(process),
            Slot::Starting { .. } => None,
        })
    }

    pub(super) fn starting(&self) -> impl Iterator<Item = &Arc<About>> {
        self.slots.values().filter_map(|taken| match &taken.slot {
            Slot::Starting { about, .. } => Some(about),
            Slot::Live(_) => None,
        })
    }
}

/// A slot that is to be filled; dropping it frees the slot.
pub struct Reservation {
    session: Session,
    pub(crate) about: Arc<About>,
}

impl Reservation {
    pub(super) fn new(session: Session, about: Arc<About>) -> Self {
        Reservation { session, about }
    }

    /// Puts the process into its slot; fails if somebody didn't want it any
    /// more, and then the child must go.
    pub(crate) fn fill(self, process: &Process) -> Result<(), StartError> {
        self.session.fill(&self.about.id, process)
    }

    /// Gives the slot up because of this error, and says what to answer: a start
    /// that was cancelled was cancelled, whatever else went wrong with it.
    pub(crate) fn fail(self, error: StartError) -> StartError {
        self.session
            .with_slots(|slots| slots.fail(&self.about, error))
    }

    /// Whether it is still wanted.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        self.session
            .with_slots(|slots| slots.is_cancelled(&self.about.id))
    }

    /// Waits until it isn't wanted any more, and says why.
    pub(crate) async fn unwanted(&self) -> StartError {
        loop {
            let settled = self.session.next_settled();
            if let Err(error) = self.check() {
                return error;
            }
            settled.await;
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.session.with_slots(|slots| slots.free(&self.about));
        self.session.start_settled();
    }
}
