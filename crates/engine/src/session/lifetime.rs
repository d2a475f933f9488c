//! The lifetime of a session: resuming, detaching, expiry and end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use outpost_types::Delivery;
use tokio::task::AbortHandle;

use super::{Detached, Epoch, Link, ResumeError, Session, Ttl, handle::State, lease::Lease};
use crate::{Process, ResumeOptions, shell_snapshot::SnapshotCache};

impl Session {
    /// Attaches another connection. Stops eviction; the caller resumes it after the new owner had
    /// time to read.
    pub(crate) fn resume(
        &self,
        now: Instant,
        options: ResumeOptions,
        link: Arc<dyn Link>,
    ) -> Result<Epoch, ResumeError> {
        let mut state = self.state();
        let resumed = state.lease.resume(now, options.takeover);
        let replaced = match resumed {
            Ok(_) => state.link.replace(link),
            Err(_) => state.link.clone(),
        };
        if resumed.is_ok() {
            if let Some(timer) = state.timer.take() {
                timer.abort();
            }
            if let Some(delivery) = options.delivery {
                state.delivery = delivery;
            }
            if let Some(ttl) = options.ttl {
                state.lease.set_ttl(ttl);
            }
            // Acked delivery needs no extra time: unacknowledged events are never evicted.
            if state.delivery == Delivery::Push {
                for process in state.slots.live() {
                    process.log().journal.hold();
                }
            }
        }
        drop(state);
        match (resumed, replaced) {
            (Ok(_), Some(old)) => old.replaced(),
            (Err(ResumeError::Attached), Some(current)) => current.probe(),
            _ => {}
        }
        resumed
    }

    /// Sets how long the session stays without a connection, from the next time it is detached.
    /// Returns the previous value; without a new one, nothing changes.
    pub fn set_ttl(&self, ttl: Option<Ttl>) -> Ttl {
        let mut state = self.state();
        let previous = state.lease.ttl();
        if let Some(ttl) = ttl {
            state.lease.set_ttl(ttl);
        }
        previous
    }

    /// Detaches the connection. Returns how long the session stays, or `None` if the connection
    /// was not the current one. A session without processes stays for `empty_ttl` at most.
    pub(crate) fn detach(
        &self,
        epoch: Epoch,
        now: Instant,
        empty_ttl: Duration,
    ) -> Option<Detached> {
        let mut state = self.state();
        let longest = state.is_empty().then_some(empty_ttl);
        let detached = state.lease.detach(epoch, now, longest)?;
        state.link = None;
        for process in state.slots.live() {
            process.detach(state.delivery);
        }
        Some(detached)
    }

    /// Shortens the lease of a detached session without processes. Returns when it expires if that
    /// has changed.
    pub(crate) fn shorten_empty_lease(&self, now: Instant, empty_ttl: Duration) -> Option<Instant> {
        let mut state = self.state();
        if !state.is_empty() {
            return None;
        }
        state.lease.shorten(now, empty_ttl)
    }

    /// Stores the task that ends the session when it expires, instead of the previous one.
    pub(crate) fn set_timer(&self, timer: AbortHandle) {
        let mut state = self.state();
        let unneeded = if state.lease.expires().is_some() {
            state.timer.replace(timer)
        } else {
            Some(timer)
        };
        if let Some(timer) = unneeded {
            timer.abort();
        }
    }

    /// Ends the session if it has expired. The caller terminates the returned processes.
    pub(crate) fn expire(&self, now: Instant) -> Option<Vec<Process>> {
        self.end_if(|lease| lease.expire(now))
    }

    /// Ends the session, once. The caller terminates the returned processes.
    pub(crate) fn end(&self) -> Option<Vec<Process>> {
        self.end_if(Lease::end)
    }

    fn end_if(&self, ends: impl FnOnce(&mut Lease) -> bool) -> Option<Vec<Process>> {
        let mut state = self.state();
        let taken = ends(&mut state.lease).then(|| state.take_all());
        drop(state);
        // Cancel pending starts.
        self.shared.start_finished.notify_waiters();
        taken
    }

    /// Ends the session if it is detached and all its processes are forgotten and gone. Returns
    /// whether it did.
    pub(crate) fn end_if_forgotten(&self) -> bool {
        let mut state = self.state();
        state.has_forgotten && state.end_if_unused()
    }

    /// Whether it has processes: starting, running, readable or left running.
    #[must_use]
    pub fn has_processes(&self) -> bool {
        !self.state().is_empty()
    }

    /// Whether [`Session::end_if_unused`] would end it now.
    pub(crate) fn is_unused(&self) -> bool {
        let mut state = self.state();
        !state.lease.has_owner() && state.is_empty()
    }

    /// Ends the session if it is detached and has no processes. Returns whether it did.
    pub(crate) fn end_if_unused(&self) -> bool {
        self.state().end_if_unused()
    }
}

impl State {
    /// Whether it has no processes: none that starts, runs, is readable or was left running.
    fn is_empty(&mut self) -> bool {
        self.leftovers.retain(Process::has_leftovers);
        self.slots.is_empty() && self.leftovers.is_empty()
    }

    fn end_if_unused(&mut self) -> bool {
        let unused = !self.lease.has_owner() && self.is_empty();
        unused && self.lease.end() && self.take_all().is_empty()
    }

    /// Takes all processes of an ended session.
    fn take_all(&mut self) -> Vec<Process> {
        self.link = None;
        self.permit = None;
        self.snapshots = SnapshotCache::default();
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
        let slots = std::mem::take(&mut self.slots);
        let mut processes = std::mem::take(&mut self.leftovers);
        processes.extend(slots.live().cloned());
        processes
    }
}
