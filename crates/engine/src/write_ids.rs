//! Deduplicates retried writes by their id.

use std::collections::{HashMap, VecDeque};

/// The state of a write id. `P` is what a retry waits on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known<P> {
    /// The first write with this id is still being queued.
    Pending(P),
    /// The write was accepted.
    Accepted,
}

/// The most recent write ids of a process.
#[derive(Debug)]
pub(crate) struct WriteIds<P> {
    capacity: usize,
    known: HashMap<String, Known<P>>,
    /// Accepted ids, oldest first. Pending ids are never evicted.
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

    /// Records the first write with this id.
    pub(crate) fn begin(&mut self, id: &str, pending: P) {
        self.known.insert(id.to_owned(), Known::Pending(pending));
    }

    /// Records that the write was accepted, and evicts the oldest id.
    pub(crate) fn accept(&mut self, id: String) {
        self.known.insert(id.clone(), Known::Accepted);
        self.order.push_back(id);
        while self.order.len() > self.capacity {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// Records that the write had no effect, so that it can be retried.
    pub(crate) fn reject(&mut self, id: &str) {
        self.known.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_ids_are_remembered() {
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
    fn rejected_write_may_be_retried() {
        let mut ids = WriteIds::new(2);
        ids.begin("a", 7);
        assert_eq!(ids.get("a"), Some(&Known::Pending(7)));
        ids.reject("a");
        assert_eq!(ids.get("a"), None);
    }
}
