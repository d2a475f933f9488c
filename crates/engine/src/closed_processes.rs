//! Retention of closed processes: bounded by age, count and bytes. Pure: time is passed in.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::clock;

/// A queue of closed processes, oldest first. `T` identifies a process.
#[derive(Debug)]
pub(crate) struct ClosedProcesses<T> {
    retention: Duration,
    max_items: usize,
    max_bytes: u64,
    items: VecDeque<Item<T>>,
    bytes: u64,
}

#[derive(Debug)]
struct Item<T> {
    expires: Instant,
    bytes: u64,
    process: T,
}

impl<T> ClosedProcesses<T> {
    pub(crate) fn new(retention: Duration, max_items: usize, max_bytes: u64) -> Self {
        ClosedProcesses {
            retention,
            max_items,
            max_bytes,
            items: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Adds a process that retains this many bytes of output.
    pub(crate) fn push(&mut self, now: Instant, process: T, bytes: u64) {
        self.bytes += bytes;
        self.items.push_back(Item {
            expires: clock::after(now, self.retention),
            bytes,
            process,
        });
    }

    /// Removes expired processes, and the oldest ones while a limit is exceeded.
    pub(crate) fn take_expired(&mut self, now: Instant) -> Vec<T> {
        let mut expired = Vec::new();
        loop {
            let over_limit = self.items.len() > self.max_items || self.bytes > self.max_bytes;
            let is_expired = |oldest: &mut Item<T>| over_limit || oldest.expires <= now;
            let Some(item) = self.items.pop_front_if(is_expired) else {
                return expired;
            };
            self.bytes -= item.bytes;
            expired.push(item.process);
        }
    }

    /// When the oldest process expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.items.front().map(|oldest| oldest.expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_retention_never_expires() {
        let now = Instant::now();
        let mut closed = ClosedProcesses::new(Duration::MAX, 3, 100);
        closed.push(now, 1, 10);
        let later = now + Duration::from_secs(1_000_000_000);
        assert!(closed.take_expired(later).is_empty());
    }

    #[test]
    fn processes_expire_by_age_count_and_bytes() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut closed = ClosedProcesses::new(30 * second, 3, 100);
        for process in 1..=4 {
            closed.push(now, process, 10);
        }
        assert_eq!(closed.take_expired(now), [1], "by count");
        closed.push(now + second, 5, 75);
        assert_eq!(closed.take_expired(now + second), [2], "by bytes and count");
        assert_eq!(closed.next_expiry(), Some(now + 30 * second));
        assert_eq!(closed.take_expired(now + 30 * second), [3, 4], "by age");
        assert_eq!(closed.take_expired(now + 31 * second), [5]);
        assert_eq!(closed.next_expiry(), None);
    }
}
