//! Closed processes that stay readable for a while.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::clock;

/// What is on the shelf, oldest first. `T` says whose it is.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    keep: Duration,
    max_items: usize,
    max_bytes: u64,
    items: VecDeque<Item<T>>,
    bytes: u64,
}

#[derive(Debug)]
struct Item<T> {
    expires: Instant,
    bytes: u64,
    what: T,
}

impl<T> Shelf<T> {
    pub(crate) fn new(keep: Duration, max_items: usize, max_bytes: u64) -> Self {
        Shelf {
            keep,
            max_items,
            max_bytes,
            items: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Puts something on the shelf.
    pub(crate) fn put(&mut self, now: Instant, what: T, bytes: u64) {
        self.bytes += bytes;
        self.items.push_back(Item {
            expires: clock::after(now, self.keep),
            bytes,
            what,
        });
    }

    /// Takes off what has been there long enough, and the oldest where there
    /// is too much.
    pub(crate) fn clear(&mut self, now: Instant) -> Vec<T> {
        let mut gone = Vec::new();
        while let Some(oldest) = self.items.front() {
            let crowded = self.items.len() > self.max_items || self.bytes > self.max_bytes;
            if oldest.expires > now && !crowded {
                break;
            }
            if let Some(item) = self.items.pop_front() {
                self.bytes -= item.bytes;
                gone.push(item.what);
            }
        }
        gone
    }

    /// When the oldest has been there long enough.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.items.front().map(|oldest| oldest.expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_may_stay_as_long_as_can_be_said() {
        let now = Instant::now();
        let mut shelf = Shelf::new(Duration::MAX, 3, 100);
        shelf.put(now, 1, 10);
        assert!(
            shelf
                .clear(now + Duration::from_secs(1_000_000_000))
                .is_empty()
        );
    }

    #[test]
    fn things_go_by_age_by_number_and_by_size() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut shelf = Shelf::new(30 * second, 3, 100);
        for what in 1..=4 {
            shelf.put(now, what, 10);
        }
        assert_eq!(shelf.clear(now), [1], "by number");
        shelf.put(now + second, 5, 75);
        assert_eq!(shelf.clear(now + second), [2], "by size, and number");
        assert_eq!(shelf.next_expiry(), Some(now + 30 * second));
        assert_eq!(shelf.clear(now + 30 * second), [3, 4], "by age");
        assert_eq!(shelf.clear(now + 31 * second), [5]);
        assert_eq!(shelf.next_expiry(), None);
    }
}
