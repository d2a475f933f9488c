//! How many requests of a connection may be under way.

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

/// A request this much smaller than the room for all is a small one.
const NOTABLE_PART: usize = 1024;

/// Bounds the requests of a connection that have not been answered yet, by
/// number and by the bytes of their messages.
///
/// A request too many is refused; one that is too large for now waits, and so
/// does everything behind it. That could be for ever, if what is under way waits
/// for somebody who does nothing. So when nothing of any size has come to its end
/// for a while, what has no room is refused too, until something does.
#[derive(Clone, Debug)]
pub struct Admission {
    max_requests: usize,
    max_bytes: usize,
    /// For how long nothing may have come to its end.
    room_within: Duration,
    under_way: Arc<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// From how many bytes on the end of a request is news.
    notable: usize,
    /// How many such ends there were.
    moved: AtomicUsize,
    /// There was none for too long, while somebody waited for room.
    stuck: AtomicBool,
    /// Wakes whoever waits for room.
    freed: Notify,
    /// Wakes whoever waits for all of them to be answered.
    idle: Notify,
}

/// A place among the requests under way; dropping it, when the answer is
/// queued, frees the place.
#[derive(Debug)]
pub struct Ticket {
    bytes: usize,
    under_way: Arc<UnderWay>,
}

impl Admission {
    /// Nothing is under way yet.
    #[must_use]
    pub fn new(max_requests: usize, max_bytes: usize, room_within: Duration) -> Self {
        Admission {
            max_requests,
            max_bytes,
            room_within,
            under_way: Arc::new(UnderWay {
                requests: AtomicUsize::new(0),
                bytes: AtomicUsize::new(0),
                notable: max_bytes / NOTABLE_PART,
                moved: AtomicUsize::new(0),
                stuck: AtomicBool::new(false),
                freed: Notify::new(),
                idle: Notify::new(),
            }),
        }
    }

    /// Waits until every request has been answered.
    pub async fn idle(&self) {
        loop {
            let idle = self.under_way.idle.notified();
            if self.requests() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// A place for a request of so many bytes, once there is room for them;
    /// none if there are too many, or if room doesn't come. The only one under
    /// way may be of any size.
    ///
    /// Called by the one task that reads the connection, so that looking and
    /// taking needn't be one step.
    pub async fn admit(&self, bytes: usize) -> Option<Ticket> {
        let (mut moved, mut deadline) = (self.moved(), Instant::now() + self.room_within);
        loop {
            let freed = self.under_way.freed.notified();
            if self.requests() >= self.max_requests {
                return None;
            }
            let held = self.under_way.bytes.load(Ordering::Acquire);
            if self.requests() == 0 || held + bytes <= self.max_bytes {
                return Some(self.take(bytes));
            }
            if self.under_way.stuck.load(Ordering::Acquire) {
                return None;
            }
            if self.moved() != moved {
                (moved, deadline) = (self.moved(), Instant::now() + self.room_within);
            }
            if timeout_at(deadline, freed).await.is_err() {
                self.under_way.stuck.store(true, Ordering::Release);
                if self.moved() == moved {
                    return None;
                }
                self.under_way.stuck.store(false, Ordering::Release);
            }
        }
    }

    fn moved(&self) -> usize {
        self.under_way.moved.load(Ordering::Acquire)
    }

    /// A place for a request that takes no room, unless there are too many.
    #[must_use]
    pub fn admit_small(&self) -> Option<Ticket> {
        (self.requests() < self.max_requests).then(|| self.take(0))
    }

    fn requests(&self) -> usize {
        self.under_way.requests.load(Ordering::Acquire)
    }

    fn take(&self, bytes: usize) -> Ticket {
        self.under_way.requests.fetch_add(1, Ordering::AcqRel);
        self.under_way.bytes.fetch_add(bytes, Ordering::AcqRel);
        Ticket {
            bytes,
            under_way: Arc::clone(&self.under_way),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let under_way = &self.under_way;
        under_way.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        // Small ones that come and go are no sign that what is stuck moves.
        if self.bytes >= under_way.notable {
            under_way.moved.fetch_add(1, Ordering::AcqRel);
            under_way.stuck.store(false, Ordering::Release);
        }
        if under_way.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            under_way.idle.notify_waiters();
        }
        under_way.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(5);
    const KIB: usize = 1024;

    #[tokio::test(start_paused = true)]
    async fn one_too_many_is_refused_at_once() {
        let admission = Admission::new(2, 100, WITHIN);
        let start = Instant::now();
        let first = admission.admit(5000).await;
        assert!(first.is_some(), "a big one alone is let in");
        let second = admission.admit_small();
        assert!(second.is_some());
        assert!(admission.admit(0).await.is_none());
        assert!(admission.admit_small().is_none());
        drop((first, second));
        assert!(admission.admit(0).await.is_some());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn one_too_large_waits_for_room_as_long_as_some_comes() {
        let admission = Admission::new(10, 100, WITHIN);
        let held = [admission.admit(50).await, admission.admit(50).await];
        let frees = async {
            for ticket in held {
                // sleep: virtual time, just within what is allowed
                tokio::time::sleep(WITHIN - Duration::from_millis(1)).await;
                drop(ticket.expect("there is room"));
            }
        };
        let (large, ()) = tokio::join!(admission.admit(90), frees);
        assert!(large.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn while_nothing_moves_what_is_too_large_is_refused() {
        let admission = Admission::new(10, 100 * KIB, WITHIN);
        let stuck = admission.admit(90 * KIB).await;
        let start = Instant::now();
        assert!(admission.admit(20 * KIB).await.is_none());
        assert_eq!(start.elapsed(), WITHIN);
        for _ in 0..3 {
            assert!(admission.admit(20 * KIB).await.is_none());
            assert!(admission.admit(10).await.is_some(), "this has room");
        }
        assert_eq!(start.elapsed(), WITHIN, "they waited for nothing");
        drop(stuck);
        let next = admission.admit(95 * KIB).await;
        assert!(admission.admit(20 * KIB).await.is_none());
        assert_eq!(start.elapsed(), WITHIN * 2, "this is another time");
        drop(next);
    }

    #[tokio::test(start_paused = true)]
    async fn small_ones_that_end_are_no_reason_to_wait_on() {
        let admission = Admission::new(10, 100 * KIB, WITHIN);
        let _stuck = admission.admit(90 * KIB).await;
        let polls = [admission.admit(10).await, admission.admit(10).await];
        let start = Instant::now();
        let ends = async {
            for poll in polls {
                // sleep: virtual time, in which one of them waits
                tokio::time::sleep(WITHIN - Duration::from_secs(1)).await;
                drop(poll);
            }
        };
        let large = async {
            assert!(admission.admit(20 * KIB).await.is_none());
            start.elapsed()
        };
        let (waited, ()) = tokio::join!(large, ends);
        assert_eq!(waited, WITHIN);
    }
}
