//! Which writes a process has seen, so that a retry writes nothing again.

use std::collections::{HashMap, VecDeque};

/// What is known of a write id. `P` is whatever a retry can wait on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known<P> {
    /// The first write with this id is still being queued.
    Pending(P),
    /// It was accepted.
    Accepted,
}

/// The newest write ids of a process.
#[derive(Debug)]
pub(crate) struct WriteIds<P> {
    capacity: usize,
    known: HashMap<String, Known<P>>,
    /// Accepted ids, oldest first; a pending one is never forgotten.
    order: VecDeque<String>,
}

impl<P> WriteIds<P> {
    pub(crate) fn new(capacity: usize) -> Self {
        WriteIds {
            capacity,
            known: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Known<P>> {
        self.known.get(id)
    }

    /// A first write with this id has begun.
    pub(crate) fn begin(&mut self, id: &str, pending: P) {
        self.known.insert(id.to_owned(), Known::Pending(pending));
    }

    /// The write was accepted: its id is remembered, and the oldest forgotten.
    pub(crate) fn accept(&mut self, id: String) {
        self.known.insert(id.clone(), Known::Accepted);
        self.order.push_back(id);
        while self.order.len() > self.capacity {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// The write took no effect: a retry is a first write again.
    pub(crate) fn refuse(&mut self, id: &str) {
        self.known.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered() {
        let mut ids = WriteIds::<()>::new(2);
        for id in ["a", "b", "c"] {
            ids.begin(id, ());
            ids.accept(id.to_owned());
        }
        assert_eq!(ids.get("a"), None);
        assert_eq!(ids.get("b"), Some(&Known::Accepted));
        assert_eq!(ids.get("c"), Some(&Known::Accepted));
    }

    #[test]
    fn a_refused_write_may_be_tried_again() {
        let mut ids = WriteIds::new(2);
        ids.begin("a", 7);
        assert_eq!(ids.get("a"), Some(&Known::Pending(7)));
        ids.refuse("a");
        assert_eq!(ids.get("a"), None);
    }
}
