//! The slots of a session, one per process id, and starts that reserve them.

use std::{collections::HashMap, sync::Arc};

use outpost_sandbox::TurnKey;

use super::Session;
use crate::{ActivityGuard, Process, ProcessInfo, ReadError, Start, StartError, clock};

/// The processes of a session by id, including reserved ids of processes that are starting.
#[derive(Default)]
pub(super) struct ProcessSlots {
    slots: HashMap<String, Slot>,
    /// How many slots were ever reserved.
    reserved: u64,
}

/// An occupied slot.
struct Slot {
    info: Arc<ProcessInfo>,
    /// Whether the start was cancelled.
    cancelled: bool,
    /// The child, once it exists.
    process: Option<Process>,
    /// A process counts as active while it has a slot.
    _active: ActivityGuard,
}

impl ProcessSlots {
    pub(super) fn find(&self, id: &str) -> Result<&Process, ReadError> {
        let slot = self.slots.get(id);
        let slot = slot.ok_or_else(|| ReadError::Unknown(id.to_owned()))?;
        let process = slot.process.as_ref();
        process.ok_or_else(|| ReadError::Starting(id.to_owned()))
    }

    fn starting_mut(&mut self, id: &str) -> Option<&mut Slot> {
        self.slots.get_mut(id).filter(|slot| slot.process.is_none())
    }

    /// Returns the slot of a start, unless it was cancelled or the session has ended.
    fn uncancelled(&mut self, id: &str) -> Result<&mut Slot, StartError> {
        match self.starting_mut(id) {
            Some(slot) if !slot.cancelled => Ok(slot),
            Some(_) => Err(StartError::Cancelled(id.to_owned())),
            None => Err(StartError::SessionEnded),
        }
    }

    /// Cancels a start. Returns whether there was one.
    pub(super) fn cancel(&mut self, id: &str) -> bool {
        let slot = self.starting_mut(id);
        slot.map(|slot| slot.cancelled = true).is_some()
    }

    /// Frees the slot of exactly this start, if it was not filled. The id may belong to another
    /// start by now.
    fn free(&mut self, reserved: &Arc<ProcessInfo>) {
        let slot = self.starting_mut(&reserved.id);
        if slot.is_some_and(|slot| Arc::ptr_eq(&slot.info, reserved)) {
            self.slots.remove(&reserved.id);
        }
    }

    /// Frees the slot of exactly this process. Returns whether it had one.
    pub(super) fn forget(&mut self, process: &Process) -> bool {
        let same = self
            .find(process.id())
            .is_ok_and(|live| live.key() == process.key());
        same && self.slots.remove(process.id()).is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &Process> {
        self.slots.values().filter_map(|slot| slot.process.as_ref())
    }

    pub(super) fn starting(&self) -> impl Iterator<Item = &Arc<ProcessInfo>> {
        let starting = |slot: &&Slot| slot.process.is_none();
        self.slots.values().filter(starting).map(|slot| &slot.info)
    }
}

impl Session {
    /// Reserves a slot for a process that is about to start.
    pub fn reserve(&self, start: &Start) -> Result<Reservation, StartError> {
        let mut state = self.state();
        if state.lease.has_ended() {
            return Err(StartError::SessionEnded);
        }
        let slots = &mut state.slots;
        if slots.slots.contains_key(&start.id) {
            return Err(StartError::Exists(start.id.clone()));
        }
        slots.reserved += 1;
        let info = Arc::new(ProcessInfo::new(start, slots.reserved));
        let slot = Slot {
            info: Arc::clone(&info),
            cancelled: false,
            process: None,
            _active: self.shared.activity.track(),
        };
        slots.slots.insert(start.id.clone(), slot);
        let session = self.clone();
        Ok(Reservation { session, info })
    }

    /// Whether a process with this id is starting.
    #[must_use]
    pub fn is_starting(&self, id: &str) -> bool {
        self.state().slots.starting_mut(id).is_some()
    }

    /// Waits until no process with this id is starting.
    pub async fn wait_started(&self, id: &str) {
        let started = || (!self.is_starting(id)).then_some(());
        clock::wait_for(&self.shared.start_finished, started).await;
    }
}

/// A reserved slot. Dropping it frees the slot unless it was filled.
pub struct Reservation {
    session: Session,
    pub(crate) info: Arc<ProcessInfo>,
}

impl Reservation {
    /// Puts the process into its slot, and detaches it if the session has no owner, so that it does
    /// not wait for one. Fails if the start was cancelled; the caller must then kill the child.
    pub(crate) fn fill(self, process: &Process) -> Result<(), StartError> {
        let mut state = self.session.state();
        state.slots.uncancelled(&self.info.id)?.process = Some(process.clone());
        if !state.lease.has_owner() {
            process.detach(state.delivery);
        }
        Ok(())
    }

    /// Frees the slot and returns the error to report: a cancellation takes precedence over
    /// other errors. Checks for it in the same step, so that the result of the start and the response
    /// to the terminate request agree.
    pub fn fail(self, error: StartError) -> StartError {
        let slots = &mut self.session.state().slots;
        let cancelled = slots.uncancelled(&self.info.id).err();
        slots.free(&self.info);
        match cancelled {
            Some(cancelled @ StartError::Cancelled(_)) => cancelled,
            _ => error,
        }
    }

    /// The key by which the preparation of its sandbox takes turns.
    pub(crate) fn turn_key(&self) -> TurnKey {
        self.session.peer().turn_key(self.session.key())
    }

    /// Fails if the start was cancelled or the session has ended.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        let slots = &mut self.session.state().slots;
        slots.uncancelled(&self.info.id).map(drop)
    }

    /// Waits until the start is cancelled or the session ends.
    pub(crate) async fn cancelled(&self) -> StartError {
        let changed = &self.session.shared.start_finished;
        clock::wait_for(changed, || self.check().err()).await
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.session.state().slots.free(&self.info);
        self.session.shared.start_finished.notify_waiters();
    }
}
