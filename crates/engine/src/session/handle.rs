//! A session, for everybody who has to do with it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use outpost_journal::Seq;
use outpost_process::{Signal, Size};
use tokio::{sync::Notify, task::AbortHandle};

use super::{
    Delivery, Detached, Epoch, Link, Reservation, ResumeRefusal, SessionId, Ttl, lease::Lease,
    slots::Slots,
};
use crate::{
    About, Process, ReadError, ResizeError, Start, StartError, State, Watcher, WriteStatus,
};

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

/// What a terminate found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminated {
    /// It was running, or about to, and is being ended.
    Running,
    /// There was nothing to end.
    NotRunning,
}

/// A handle on a session; clones name the same one.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    id: SessionId,
    created_at: SystemTime,
    inside: Mutex<Inside>,
    /// Wakes those who wait for a start, whenever one succeeds or fails.
    settled: Notify,
}

struct Inside {
    lease: Lease,
    label: Option<String>,
    delivery: Delivery,
    slots: Slots,
    /// What processes left running that are no longer in a slot.
    leftovers: Vec<Process>,
    /// The connection that has the session.
    link: Option<Arc<dyn Link>>,
    /// The task that ends the session when its time is over.
    timer: Option<AbortHandle>,
}

impl Session {
    /// A new session, attached to the connection that made it.
    pub(crate) fn new(options: SessionOptions, link: Arc<dyn Link>) -> (Session, Epoch) {
        let lease = Lease::new(options.ttl);
        let epoch = lease.epoch();
        let session = Session {
            shared: Arc::new(Shared {
                id: SessionId::random(),
                created_at: SystemTime::now(),
                inside: Mutex::new(Inside {
                    lease,
                    label: options.label,
                    delivery: options.delivery,
                    slots: Slots::default(),
                    leftovers: Vec::new(),
                    link: Some(link),
                    timer: None,
                }),
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
    pub(crate) fn is_current(&self, epoch: Epoch) -> bool {
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
        if inside.lease.is_attached(epoch) {
            process.attach(cursor, watcher, start);
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
        inside.lease.expire(now).then(|| inside.take_all())
    }

    /// Ends the session, once; what it has is for the caller to end.
    pub(crate) fn end(&self) -> Option<Vec<Process>> {
        let mut inside = self.inside();
        inside.lease.end().then(|| inside.take_all())
    }

    /// Reserves a name for a process that is about to start.
    pub fn reserve(&self, start: &Start) -> Result<Reservation, StartError> {
        let about = Arc::new(About::new(start));
        let mut inside = self.inside();
        if inside.lease.has_ended() {
            return Err(StartError::SessionEnded);
        }
        inside.slots.reserve(Arc::clone(&about))?;
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

    /// Whether a start of this name is under way.
    #[must_use]
    pub fn is_starting(&self, id: &str) -> bool {
        self.inside().slots.is_starting(id)
    }

    /// Waits until no start of this name is under way.
    pub async fn settled(&self, id: &str) {
        loop {
            let settled = self.shared.settled.notified();
            if !self.is_starting(id) {
                return;
            }
            settled.await;
        }
    }

    /// Forgets a process that was closed long enough ago. What it left running
    /// stays with the session.
    pub(crate) fn forget(&self, process: &Process) {
        let mut inside = self.inside();
        if inside.slots.forget(process) {
            inside.leftovers.retain(Process::has_leftovers);
            if process.has_leftovers() {
                process.forget_output();
                inside.leftovers.push(process.clone());
            }
        }
    }

    /// Writes to a process.
    pub async fn write(
        &self,
        id: &str,
        bytes: Bytes,
        write_id: Option<String>,
        end: bool,
    ) -> WriteStatus {
        match self.find(id) {
            Ok(process) => process.write(bytes, write_id, end).await,
            Err(ReadError::Starting(_)) => WriteStatus::Starting,
            Err(ReadError::Unknown(_)) => WriteStatus::UnknownProcess,
        }
    }

    /// The client has everything of a process up to `seq`. Unknown processes
    /// are not worth an answer.
    pub fn acknowledge(&self, id: &str, seq: Seq) {
        if self.delivery() == Delivery::Acked
            && let Ok(process) = self.find(id)
        {
            process.advance(seq);
        }
    }

    /// Signals a process; nobody there is nobody signalled.
    pub fn signal(&self, id: &str, signal: Signal) {
        if let Ok(process) = self.find(id) {
            process.signal(signal);
        }
    }

    /// Ends a process, or the start of one; `tree` also kills what one that
    /// has exited left running.
    pub fn terminate(&self, id: &str, grace: Option<Duration>, tree: bool) -> Terminated {
        let found = {
            let mut inside = self.inside();
            if inside.slots.cancel(id) {
                return Terminated::Running;
            }
            inside.slots.find(id).cloned()
        };
        let Ok(process) = found else {
            return Terminated::NotRunning;
        };
        if process.is_running() {
            process.end(grace);
            return Terminated::Running;
        }
        if tree {
            process.kill_tree();
        }
        Terminated::NotRunning
    }

    /// Gives a process's terminal another size.
    pub fn resize(&self, id: &str, size: Size) -> Result<(), ResizeError> {
        let process = self
            .find(id)
            .map_err(|_| ResizeError::Unknown(id.to_owned()))?;
        if !process.is_pty() {
            return Err(ResizeError::NotATerminal(id.to_owned()));
        }
        // The terminal of one that has ended has no size, and nobody misses it.
        if process.summary().state == State::Closed {
            return Ok(());
        }
        process.resize(size).map_err(|source| ResizeError::Os {
            id: id.to_owned(),
            source,
        })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
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
