//! How many requests of a connection may be under way.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// Bounds the requests of a connection that have not been answered yet, by
/// number and by the bytes of their messages.
#[derive(Clone, Debug)]
pub struct Admission {
    max_requests: usize,
    max_bytes: usize,
    under_way: Arc<UnderWay>,
}

#[derive(Debug, Default)]
struct UnderWay {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// Wakes whoever waits for all of them to be answered.
    idle: Notify,
}

/// A place among the requests under way; dropping it, when the answer has been
/// written, frees the place.
#[derive(Debug)]
pub struct Ticket {
    bytes: usize,
    under_way: Arc<UnderWay>,
}

impl Admission {
    /// Nothing is under way yet.
    #[must_use]
    pub fn new(max_requests: usize, max_bytes: usize) -> Self {
        Admission {
            max_requests,
            max_bytes,
            under_way: Arc::default(),
        }
    }

    /// Waits until every request has been answered, and the answer written.
    pub async fn idle(&self) {
        loop {
            let idle = self.under_way.idle.notified();
            if self.under_way.requests.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }

    /// A place for a request of so many bytes, unless there are too many. The
    /// only one under way may be of any size.
    ///
    /// Called by the one task that reads the connection, so that looking and
    /// taking needn't be one step.
    #[must_use]
    pub fn admit(&self, bytes: usize) -> Option<Ticket> {
        let requests = self.under_way.requests.load(Ordering::Acquire);
        let held = self.under_way.bytes.load(Ordering::Acquire);
        if requests >= self.max_requests || (requests > 0 && held + bytes > self.max_bytes) {
            return None;
        }
        self.under_way.requests.fetch_add(1, Ordering::AcqRel);
        self.under_way.bytes.fetch_add(bytes, Ordering::AcqRel);
        Some(Ticket {
            bytes,
            under_way: Arc::clone(&self.under_way),
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.under_way.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        if self.under_way.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.under_way.idle.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_is_refused_until_a_place_is_free() {
        let admission = Admission::new(2, 100);
        let first = admission.admit(90).unwrap();
        assert!(admission.admit(20).is_none(), "too many bytes");
        let second = admission.admit(10).unwrap();
        assert!(admission.admit(0).is_none(), "too many requests");
        drop((first, second));
        assert!(admission.admit(5000).is_some(), "a big one alone is let in");
    }
}
