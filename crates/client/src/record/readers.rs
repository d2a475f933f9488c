//! Those who read a process's log.

use std::{collections::HashMap, task::Waker};

use outpost_journal::Seq;

/// The cursors on a log. The lowest of them is the floor: nothing behind it may
/// be forgotten.
#[derive(Debug)]
pub(super) struct Readers {
    reserve: Reserve,
    cursors: HashMap<u64, Reader>,
    next_key: u64,
}

/// Stands for a reader that has not subscribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reserve {
    /// One is still to come, and what is written before it does must not be
    /// lost.
    Expected(Seq),
    /// Somebody polls, and has had everything up to here.
    Polled(Seq),
    /// There is none, and none is waited for.
    Nobody,
}

#[derive(Debug)]
struct Reader {
    cursor: Seq,
    /// Whom to wake at the next event.
    waker: Option<Waker>,
}

impl Readers {
    pub(super) fn expecting_one_at(cursor: Seq) -> Self {
        Readers {
            reserve: Reserve::Expected(cursor),
            cursors: HashMap::new(),
            next_key: 0,
        }
    }

    /// Nothing up to `cursor` will ever be there.
    pub(super) fn begin_after(&mut self, cursor: Seq) {
        if let Reserve::Expected(before) | Reserve::Polled(before) = &mut self.reserve {
            *before = cursor.max(*before);
        }
        for reader in self.cursors.values_mut() {
            reader.cursor = reader.cursor.max(cursor);
        }
    }

    /// The lowest cursor, if anybody reads or is expected to.
    pub(super) fn floor(&self) -> Option<Seq> {
        let cursors = self.cursors.values().map(|reader| reader.cursor);
        let reserve = match self.reserve {
            Reserve::Expected(cursor) | Reserve::Polled(cursor) => Some(cursor),
            Reserve::Nobody => None,
        };
        cursors.chain(reserve).min()
    }

    pub(super) fn join(&mut self, cursor: Seq) -> u64 {
        self.reserve = Reserve::Nobody;
        self.next_key += 1;
        let waker = None;
        self.cursors.insert(self.next_key, Reader { cursor, waker });
        self.next_key
    }

    pub(super) fn leave(&mut self, key: u64) {
        self.cursors.remove(&key);
    }

    pub(super) fn advance(&mut self, key: u64, cursor: Seq) {
        if let Some(reader) = self.cursors.get_mut(&key) {
            reader.cursor = reader.cursor.max(cursor);
        }
    }

    pub(super) fn wake_at_news(&mut self, key: u64, waker: &Waker) {
        if let Some(reader) = self.cursors.get_mut(&key) {
            match &mut reader.waker {
                Some(known) => known.clone_from(waker),
                None => reader.waker = Some(waker.clone()),
            }
        }
    }

    /// A poll has everything up to `cursor`.
    pub(super) fn polled(&mut self, cursor: Seq) {
        if let Reserve::Expected(before) | Reserve::Polled(before) = self.reserve {
            self.reserve = Reserve::Polled(cursor.max(before));
        }
    }

    /// Nobody is expected to come any more.
    pub(super) fn expect_nobody(&mut self) {
        if let Reserve::Expected(_) = self.reserve {
            self.reserve = Reserve::Nobody;
        }
    }

    /// There is nobody left who could come or poll.
    pub(super) fn abandon(&mut self) {
        self.reserve = Reserve::Nobody;
    }

    pub(super) fn wakers(&mut self) -> Vec<Waker> {
        let readers = self.cursors.values_mut();
        readers.filter_map(|reader| reader.waker.take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reader_is_waited_for() {
        let mut readers = Readers::expecting_one_at(Seq(0));
        assert_eq!(readers.floor(), Some(Seq(0)));
        readers.polled(Seq(3));
        readers.polled(Seq(2));
        assert_eq!(readers.floor(), Some(Seq(3)));
        let key = readers.join(Seq(1));
        assert_eq!(readers.floor(), Some(Seq(1)));
        readers.leave(key);
        assert_eq!(readers.floor(), None, "and nobody after it");
    }

    #[test]
    fn who_polls_is_not_left_behind_by_who_waits() {
        let mut readers = Readers::expecting_one_at(Seq(0));
        readers.polled(Seq(0));
        readers.expect_nobody();
        assert_eq!(readers.floor(), Some(Seq(0)));
        readers.abandon();
        assert_eq!(readers.floor(), None);
        let mut readers = Readers::expecting_one_at(Seq(0));
        readers.expect_nobody();
        assert_eq!(readers.floor(), None);
    }

    #[test]
    fn the_slowest_is_the_floor() {
        let mut readers = Readers::expecting_one_at(Seq(0));
        let slow = readers.join(Seq(0));
        let fast = readers.join(Seq(0));
        readers.advance(fast, Seq(9));
        assert_eq!(readers.floor(), Some(Seq(0)));
        readers.advance(slow, Seq(4));
        readers.advance(slow, Seq(2));
        assert_eq!(readers.floor(), Some(Seq(4)));
        readers.leave(slow);
        assert_eq!(readers.floor(), Some(Seq(9)));
    }
}
