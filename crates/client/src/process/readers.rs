//! Readers of a process's event log.

use std::{collections::HashMap, task::Waker};

use outpost_journal::Seq;

/// The cursors on an event log. Events after the lowest cursor must be retained.
#[derive(Debug)]
pub(super) struct Readers {
    implicit: ImplicitReader,
    subscribed: HashMap<u64, Reader>,
    next_key: u64,
}

/// A reader that holds a cursor without having subscribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImplicitReader {
    /// The first subscriber is still expected; output before it must not be lost.
    Expected(Seq),
    /// A caller polls and has seen everything up to this event.
    Polling(Seq),
    None,
}

#[derive(Debug)]
struct Reader {
    cursor: Seq,
    waker: Option<Waker>,
}

impl Readers {
    pub(super) fn expecting_first(cursor: Seq) -> Self {
        Readers {
            implicit: ImplicitReader::Expected(cursor),
            subscribed: HashMap::new(),
            next_key: 0,
        }
    }

    /// Moves every cursor forward to at least `cursor`.
    pub(super) fn advance_all(&mut self, cursor: Seq) {
        if let ImplicitReader::Expected(at) | ImplicitReader::Polling(at) = &mut self.implicit {
            *at = cursor.max(*at);
        }
        for reader in self.subscribed.values_mut() {
            reader.cursor = reader.cursor.max(cursor);
        }
    }

    /// Returns the lowest cursor, or `None` without any reader.
    pub(super) fn lowest(&self) -> Option<Seq> {
        let subscribed = self.subscribed.values().map(|reader| reader.cursor);
        let implicit = match self.implicit {
            ImplicitReader::Expected(cursor) | ImplicitReader::Polling(cursor) => Some(cursor),
            ImplicitReader::None => None,
        };
        subscribed.chain(implicit).min()
    }

    pub(super) fn add(&mut self, cursor: Seq) -> u64 {
        self.implicit = ImplicitReader::None;
        self.next_key += 1;
        let waker = None;
        self.subscribed
            .insert(self.next_key, Reader { cursor, waker });
        self.next_key
    }

    pub(super) fn remove(&mut self, key: u64) {
        self.subscribed.remove(&key);
    }

    pub(super) fn advance(&mut self, key: u64, cursor: Seq) {
        if let Some(reader) = self.subscribed.get_mut(&key) {
            reader.cursor = reader.cursor.max(cursor);
        }
    }

    /// Wakes `waker` at the next event.
    pub(super) fn register_waker(&mut self, key: u64, waker: &Waker) {
        if let Some(reader) = self.subscribed.get_mut(&key) {
            match &mut reader.waker {
                Some(known) => known.clone_from(waker),
                None => reader.waker = Some(waker.clone()),
            }
        }
    }

    /// Records that a poll has seen everything up to `cursor`.
    pub(super) fn polled(&mut self, cursor: Seq) {
        if let ImplicitReader::Expected(at) | ImplicitReader::Polling(at) = self.implicit {
            self.implicit = ImplicitReader::Polling(cursor.max(at));
        }
    }

    /// Stops retaining output for a first subscriber. A polling caller keeps its cursor.
    pub(super) fn expect_none(&mut self) {
        if let ImplicitReader::Expected(_) = self.implicit {
            self.implicit = ImplicitReader::None;
        }
    }

    /// Removes the implicit reader: no handle is left that could subscribe or poll.
    pub(super) fn remove_implicit(&mut self) {
        self.implicit = ImplicitReader::None;
    }

    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        let readers = self.subscribed.values_mut();
        readers.filter_map(|reader| reader.waker.take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_retained_for_the_first_reader_only() {
        let mut readers = Readers::expecting_first(Seq(0));
        assert_eq!(readers.lowest(), Some(Seq(0)));
        readers.polled(Seq(3));
        readers.polled(Seq(2));
        assert_eq!(readers.lowest(), Some(Seq(3)));
        let key = readers.add(Seq(1));
        assert_eq!(readers.lowest(), Some(Seq(1)));
        readers.remove(key);
        assert_eq!(readers.lowest(), None);
    }

    #[test]
    fn waiting_for_the_exit_keeps_a_polling_cursor() {
        let mut readers = Readers::expecting_first(Seq(0));
        readers.polled(Seq(0));
        readers.expect_none();
        assert_eq!(readers.lowest(), Some(Seq(0)));
        readers.remove_implicit();
        assert_eq!(readers.lowest(), None);
        let mut readers = Readers::expecting_first(Seq(0));
        readers.expect_none();
        assert_eq!(readers.lowest(), None);
    }

    #[test]
    fn slowest_reader_sets_the_lowest_cursor() {
        let mut readers = Readers::expecting_first(Seq(0));
        let slow = readers.add(Seq(0));
        let fast = readers.add(Seq(0));
        readers.advance(fast, Seq(9));
        assert_eq!(readers.lowest(), Some(Seq(0)));
        readers.advance(slow, Seq(4));
        readers.advance(slow, Seq(2));
        assert_eq!(readers.lowest(), Some(Seq(4)));
        readers.remove(slow);
        assert_eq!(readers.lowest(), Some(Seq(9)));
    }
}
