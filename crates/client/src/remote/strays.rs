//! Processes that nobody here wants, and that may exist all the same.

use std::collections::{HashSet, VecDeque};

/// How many of them are remembered, to be told that their close was heard of.
const MAX_STRAYS: usize = 1024;

/// Starts whose answer was lost, and processes that were dropped or have failed
/// here: they are to be ended, if they are there, and are nobody's afterwards.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// To be terminated at the next opportunity.
    unsettled: Vec<String>,
    /// Asked to end, or about to be: their close has to be acknowledged.
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl Strays {
    /// Nobody wants this one, and nobody has told the server.
    pub(super) fn add_unsettled(&mut self, id: String) {
        if !self.unsettled.contains(&id) {
            self.unsettled.push(id);
        }
    }

    /// Nobody listens to this one any more.
    pub(super) fn add(&mut self, id: &str) {
        if self.known.insert(id.to_owned()) {
            self.order.push_back(id.to_owned());
            if self.order.len() > MAX_STRAYS
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
    }

    /// Whether nobody listens to this one.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.known.contains(id)
    }

    /// A close has come; says whether it was a stray's, which is gone then.
    pub(super) fn closed(&mut self, id: &str) -> bool {
        self.known.remove(id)
    }

    /// Whom to terminate now.
    pub(super) fn unsettled(&self) -> Vec<String> {
        self.unsettled.clone()
    }

    /// This one was told.
    pub(super) fn settled(&mut self, id: &str) {
        self.unsettled.retain(|unsettled| unsettled != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_once_and_remembered_until_the_close() {
        let mut strays = Strays::default();
        strays.add("a");
        strays.add_unsettled("a".to_owned());
        strays.add_unsettled("a".to_owned());
        assert_eq!(strays.unsettled(), ["a"]);
        strays.settled("a");
        assert!(strays.unsettled().is_empty());
        assert!(strays.closed("a"));
        assert!(!strays.closed("a"));
    }

    #[test]
    fn there_is_an_end_to_remembering() {
        let mut strays = Strays::default();
        for number in 0..=MAX_STRAYS {
            strays.add(&number.to_string());
        }
        assert!(!strays.closed("0"));
        assert!(strays.closed("1"));
    }
}
