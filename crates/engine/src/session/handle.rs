//! A session, for everybody who has to do with it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use outpost_journal::Seq;
use tokio::{sync::Notify, task::AbortHandle};
use tokio_util::task::TaskTracker;

use super::{
    Delivery, Detached, Epoch, Link, ResumeRefusal, SessionId, Ttl, lease::Lease, slots::Slots,
};
use crate::{About, Attendance, Process, ReadError, Watcher};

/// What a client wants of its session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// How long it stays when nobody is attached.
    pub ttl: Ttl,
    /// A name for people.
    pub label: Option<String>,
    /// What counts as delivered.
    pub delivery: Delivery,
}

/// A handle on a session; clones name the same one.
#[derive(Clone)]
pub struct Session {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    id: SessionId,
    created_at: SystemTime,
    /// Whether it belongs to one connection and is known to nobody else.
    private: bool,
    inside: Mutex<Inside>,
    /// Where its processes are counted.
    pub(super) attendance: Attendance,
    /// The engine's tasks, which it waits for at its end.
    pub(super) tasks: TaskTracker,
    /// Wakes those who wait for a start, whenever one succeeds, fails or is
    /// cancelled.
    pub(super) settled: Notify,
}

pub(super) struct Inside {
    pub(super) lease: Lease,
    label: Option<String>,
    pub(super) delivery: Delivery,
    pub(super) slots: Slots,
    /// What processes left running that are no longer in a slot.
    leftovers: Vec<Process>,
    /// Whether a process of it was ever forgotten.
    has_forgotten: bool,
    /// The connection that has the session.
    link: Option<Arc<dyn Link>>,
    /// The task that ends the session when its time is over.
    timer: Option<AbortHandle>,
}

impl Session {
    /// A new session, attached to the connection that made it.
    pub(crate) fn new(
        options: SessionOptions,
        link: Arc<dyn Link>,
        belonging: (Attendance, TaskTracker),
    ) -> (Session, Epoch) {
        Self::with(options, Some(link), false, belonging)
    }

    /// A new session for the connection that made it, and for no other.
    pub(crate) fn private(belonging: (Attendance, TaskTracker)) -> (Session, Epoch) {
        let options = SessionOptions {
            ttl: Ttl::For(Duration::ZERO),
            label: None,
            delivery: Delivery::Push,
        };
        Self::with(options, None, true, belonging)
    }

    fn with(
        options: SessionOptions,
        link: Option<Arc<dyn Link>>,
        private: bool,
        (attendance, tasks): (Attendance, TaskTracker),
    ) -> (Session, Epoch) {
        let lease = Lease::new(options.ttl);
        let epoch = lease.epoch();
        let session = Session {
            shared: Arc::new(Shared {
                id: SessionId::random(),
                created_at: SystemTime::now(),
                private,
                inside: Mutex::new(Inside {
                    lease,
                    label: options.label,
                    delivery: options.delivery,
                    slots: Slots::default(),
                    leftovers: Vec::new(),
                    has_forgotten: false,
                    link,
                    timer: None,
                }),
                attendance,
                tasks,
                settled: Notify::new(),
            }),
        };
        (session, epoch)
    }

    /// The session's name.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// Whether it belongs to one connection and is known to nobody else.
    pub(crate) fn is_private(&self) -> bool {
        self.shared.private
    }

    /// Its name for people.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        self.inside().label.clone()
    }

    /// When it was made.
    #[must_use]
    pub fn created_at(&self) -> SystemTime {
        self.shared.created_at
    }

    /// Whether a connection has it now.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.inside().lease.has_owner()
    }

    /// Whether this attachment is still the one in force.
    #[must_use]
    pub fn is_current(&self, epoch: Epoch) -> bool {
        self.inside().lease.epoch() == epoch
    }

    /// When it ends, if nobody comes.
    #[must_use]
    pub fn expires(&self) -> Option<Instant> {
        self.inside().lease.expires()
    }

    /// What counts as delivered.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        self.inside().delivery
    }

    /// The processes it has.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        self.inside().slots.live().cloned().collect()
    }

    /// What is about to run.
    #[must_use]
    pub fn starting(&self) -> Vec<Arc<About>> {
        self.inside().slots.starting().cloned().collect()
    }

    /// Finds a process.
    pub fn find(&self, id: &str) -> Result<Process, ReadError> {
        self.inside().slots.find(id).cloned()
    }

    /// Makes a connection the owner of a process, from a cursor on or from
    /// where the last owner stopped, unless that connection has been replaced
    /// or lost meanwhile. `start` hears where it begins.
    pub fn attach(
        &self,
        epoch: Epoch,
        process: &Process,
        cursor: Option<Seq>,
        watcher: &Arc<dyn Watcher>,
        start: impl FnOnce(Seq),
    ) {
        let inside = self.inside();
        let is_attached = inside.lease.is_attached(epoch);
        if is_attached {
            process.attach(cursor, watcher, start);
        }
        drop(inside);
        // Without the lock: who hears of it may have something to ask.
        if is_attached {
            watcher.news();
        }
    }

    /// A connection has been sent everything of a process up to `cursor`. One
    /// that has been replaced speaks for nobody any more.
    pub fn advance(&self, epoch: Epoch, process: &Process, cursor: Seq) {
        let inside = self.inside();
        if inside.lease.is_attached(epoch) {
            process.advance(cursor);
        }
    }

    /// Hands a process that has started to whichever connection has the
    /// session; if none has, the next one will find it.
    pub fn hand_over(&self, process: &Process) {
        let (epoch, link) = {
            let inside = self.inside();
            (inside.lease.epoch(), inside.link.clone())
        };
        if let Some(link) = link {
            link.adopt(self, epoch, process);
        }
    }

    /// Lets another connection in. Nothing is evicted from then on, until the
    /// new owner has had its chance to read; the caller sees to that.
    pub(crate) fn resume(
        &self,
        now: Instant,
        takeover: bool,
        delivery: Option<Delivery>,
        ttl: Option<Ttl>,
        link: Arc<dyn Link>,
    ) -> Result<Epoch, ResumeRefusal> {
        let mut inside = self.inside();
        let resumed = inside.lease.resume(now, takeover);
        let replaced = match resumed {
            Ok(_) => inside.link.replace(link),
            Err(_) => inside.link.clone(),
        };
        if resumed.is_ok() {
            if let Some(timer) = inside.timer.take() {
                timer.abort();
            }
            if let Some(delivery) = delivery {
                inside.delivery = delivery;
            }
            if let Some(ttl) = ttl {
                inside.lease.set_ttl(ttl);
            }
            // Who acknowledges needs no time to read: nothing is evicted that it
            // has not seen.
            if inside.delivery == Delivery::Push {
                inside.slots.live().for_each(Process::hold);
            }
        }
        drop(inside);
        match (resumed, replaced) {
            (Ok(_), Some(old)) => old.replaced(),
            (Err(ResumeRefusal::Attached), Some(current)) => current.probe(),
            _ => {}
        }
        resumed
    }

    /// The connection is gone; answers what the session waits for then, or
    /// nothing if that connection didn't matter any more.
    pub(crate) fn detach(&self, epoch: Epoch, now: Instant) -> Option<Detached> {
        let mut inside = self.inside();
        let detached = inside.lease.detach(epoch, now)?;
        inside.link = None;
        for process in inside.slots.live() {
            process.detach(inside.delivery);
        }
        Some(detached)
    }

    /// Remembers who ends the session when its time is over.
    pub(crate) fn set_timer(&self, timer: AbortHandle) {
        let mut inside = self.inside();
        if inside.lease.expires().is_some() {
            inside.timer = Some(timer);
        } else {
            timer.abort();
        }
    }

    /// Ends the session if its time is over; what it has is for the caller to
    /// end.
    pub(crate) fn expire(&self, now: Instant) -> Option<Vec<Process>> {
        let mut inside = self.inside();
        let taken = inside.lease.expire(now).then(|| inside.take_all());
        drop(inside);
        self.start_settled();
        taken
    }

    /// Ends the session, once; what it has is for the caller to end.
    pub(crate) fn end(&self) -> Option<Vec<Process>> {
        let mut inside = self.inside();
        let taken = inside.lease.end().then(|| inside.take_all());
        drop(inside);
        // Who is being started hears of it.
        self.start_settled();
        taken
    }

    /// Ends the session if it had processes, none is left of them, and nobody is
    /// attached; says whether it did.
    pub(crate) fn end_if_forgotten(&self) -> bool {
        let mut inside = self.inside();
        inside.leftovers.retain(Process::has_leftovers);
        let forgotten = inside.has_forgotten
            && inside.slots.is_empty()
            && inside.leftovers.is_empty()
            && !inside.lease.has_owner();
        forgotten && inside.lease.end() && inside.take_all().is_empty()
    }

    /// Forgets a process that nobody will ask for any more. What it left running
    /// stays with the session.
    pub fn forget(&self, process: &Process) {
        let mut inside = self.inside();
        if inside.slots.forget(process) {
            inside.has_forgotten = true;
            if self.is_private() {
                // Its one owner has had everything, and won't say so again.
                process.abandon();
            }
            inside.leftovers.retain(Process::has_leftovers);
            if process.has_leftovers() {
                process.forget_output();
                inside.leftovers.push(process.clone());
            }
        }
    }

    pub(super) fn inside(&self) -> MutexGuard<'_, Inside> {
        self.shared
            .inside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    /// Empties an ended session.
    fn take_all(&mut self) -> Vec<Process> {
        self.link = None;
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
        let slots = std::mem::take(&mut self.slots);
        let mut processes = std::mem::take(&mut self.leftovers);
        processes.extend(slots.live().cloned());
        processes
    }
}
