//! Bounds the unanswered requests of a connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::MemoryCharge;

/// A request counts as large from this fraction of the byte budget on.
const LARGE_FRACTION: usize = 1024;

/// Bounds the unanswered requests of a connection, by number and by message bytes.
///
/// A request over the number limit is rejected. A request over the byte budget blocks the
/// connection until there is space. To avoid blocking forever behind requests that never
/// complete, such a request is rejected if no large request completes within
/// `admission_timeout`; from then on requests without space are rejected at once until a
/// large request completes.
#[derive(Clone, Debug)]
pub struct Admission {
    max_requests: usize,
    max_bytes: usize,
    /// Time without progress after which a waiting request is rejected.
    admission_timeout: Duration,
    in_flight: Arc<InFlight>,
}

/// The requests in flight on a connection, and their bytes.
#[derive(Debug)]
struct InFlight {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// Size from which a request is large.
    large_bytes: usize,
    /// Number of large requests that completed.
    progress: AtomicUsize,
    /// No large request completed in time while a request waited for space.
    stalled: AtomicBool,
    /// Notified when a request completes.
    completed: Notify,
    /// Notified when the last request completes.
    idle: Notify,
}

/// Permit of one unanswered request. Dropped when the response is queued.
#[derive(Debug)]
pub struct Ticket {
    bytes: usize,
    memory: Option<MemoryCharge>,
    in_flight: Arc<InFlight>,
}

impl Admission {
    /// Creates an admission without requests.
    #[must_use]
    pub fn new(max_requests: usize, max_bytes: usize, admission_timeout: Duration) -> Self {
        Admission {
            max_requests,
            max_bytes,
            admission_timeout,
            in_flight: Arc::new(InFlight {
                requests: AtomicUsize::new(0),
                bytes: AtomicUsize::new(0),
                large_bytes: max_bytes / LARGE_FRACTION,
                progress: AtomicUsize::new(0),
                stalled: AtomicBool::new(false),
                completed: Notify::new(),
                idle: Notify::new(),
            }),
        }
    }

    /// Waits until every request has been answered.
    pub async fn idle(&self) {
        loop {
            let idle = self.in_flight.idle.notified();
            if self.requests() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Waits for space and admits a request of `bytes`. Returns `None` if there are too many
    /// requests, or if no space appears in time. A single request may have any size.
    ///
    /// Must be called by one task only, because check and admission are separate steps.
    pub async fn admit(&self, bytes: usize) -> Option<Ticket> {
        let (mut progress, mut deadline) =
            (self.progress(), Instant::now() + self.admission_timeout);
        loop {
            let completed = self.in_flight.completed.notified();
            if self.requests() >= self.max_requests {
                return None;
            }
            let held = self.in_flight.bytes.load(Ordering::Acquire);
            if self.requests() == 0 || held + bytes <= self.max_bytes {
                return Some(self.issue_ticket(bytes));
            }
            if self.in_flight.stalled.load(Ordering::Acquire) {
                return None;
            }
            if self.progress() != progress {
                (progress, deadline) = (self.progress(), Instant::now() + self.admission_timeout);
            }
            if timeout_at(deadline, completed).await.is_err() {
                self.in_flight.stalled.store(true, Ordering::Release);
                if self.progress() == progress {
                    return None;
                }
                self.in_flight.stalled.store(false, Ordering::Release);
            }
        }
    }

    fn progress(&self) -> usize {
        self.in_flight.progress.load(Ordering::Acquire)
    }

    /// Admits a request without counting its bytes, unless there are too many requests.
    #[must_use]
    pub fn admit_small(&self) -> Option<Ticket> {
        (self.requests() < self.max_requests).then(|| self.issue_ticket(0))
    }

    /// Returns the number of unanswered requests.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.in_flight.requests.load(Ordering::Acquire)
    }

    fn issue_ticket(&self, bytes: usize) -> Ticket {
        self.in_flight.requests.fetch_add(1, Ordering::AcqRel);
        self.in_flight.bytes.fetch_add(bytes, Ordering::AcqRel);
        Ticket {
            bytes,
            memory: None,
            in_flight: Arc::clone(&self.in_flight),
        }
    }
}

impl Ticket {
    /// Holds the memory of the request until the response is queued.
    pub fn hold(&mut self, memory: MemoryCharge) {
        self.memory = Some(memory);
    }

    /// Takes the memory of the request, for bytes that outlive it.
    pub fn take_memory(&mut self) -> Option<MemoryCharge> {
        self.memory.take()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let in_flight = &self.in_flight;
        in_flight.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        // Small requests complete even while large requests are stalled, so they are no evidence of
        // progress.
        if self.bytes >= in_flight.large_bytes {
            in_flight.progress.fetch_add(1, Ordering::AcqRel);
            in_flight.stalled.store(false, Ordering::Release);
        }
        if in_flight.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            in_flight.idle.notify_waiters();
        }
        in_flight.completed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);
    const KIB: usize = 1024;

    #[tokio::test(start_paused = true)]
    async fn request_over_the_number_limit_is_rejected_at_once() {
        let admission = Admission::new(2, 100, TIMEOUT);
        let start = Instant::now();
        let first = admission.admit(5000).await;
        assert!(first.is_some(), "a single request may have any size");
        let second = admission.admit_small();
        assert!(second.is_some());
        assert!(admission.admit(0).await.is_none());
        assert!(admission.admit_small().is_none());
        drop((first, second));
        assert!(admission.admit(0).await.is_some());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn large_request_waits_while_others_complete() {
        let admission = Admission::new(10, 100, TIMEOUT);
        let held = [admission.admit(50).await, admission.admit(50).await];
        let complete = async {
            for ticket in held {
                // sleep: virtual time, just below the timeout
                tokio::time::sleep(TIMEOUT - Duration::from_millis(1)).await;
                drop(ticket.expect("it was admitted"));
            }
        };
        let (large, ()) = tokio::join!(admission.admit(90), complete);
        assert!(large.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn large_request_is_rejected_while_nothing_completes() {
        let admission = Admission::new(10, 100 * KIB, TIMEOUT);
        let stalled = admission.admit(90 * KIB).await;
        let start = Instant::now();
        assert!(admission.admit(20 * KIB).await.is_none());
        assert_eq!(start.elapsed(), TIMEOUT);
        for _ in 0..3 {
            assert!(admission.admit(20 * KIB).await.is_none());
            assert!(
                admission.admit(10).await.is_some(),
                "a small request still fits"
            );
        }
        assert_eq!(
            start.elapsed(),
            TIMEOUT,
            "later requests are rejected without waiting"
        );
        drop(stalled);
        let next = admission.admit(95 * KIB).await;
        assert!(admission.admit(20 * KIB).await.is_none());
        assert_eq!(
            start.elapsed(),
            TIMEOUT * 2,
            "the stall was cleared, so it waits again"
        );
        drop(next);
    }

    #[tokio::test(start_paused = true)]
    async fn completed_small_requests_do_not_extend_the_wait() {
        let admission = Admission::new(10, 100 * KIB, TIMEOUT);
        let _stuck = admission.admit(90 * KIB).await;
        let polls = [admission.admit(10).await, admission.admit(10).await];
        let start = Instant::now();
        let complete = async {
            for poll in polls {
                // sleep: virtual time, while the large request waits
                tokio::time::sleep(TIMEOUT - Duration::from_secs(1)).await;
                drop(poll);
            }
        };
        let large = async {
            assert!(admission.admit(20 * KIB).await.is_none());
            start.elapsed()
        };
        let (waited, ()) = tokio::join!(large, complete);
        assert_eq!(waited, TIMEOUT);
    }
}
