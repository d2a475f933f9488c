//! Processes of a resumed session that nobody here has attached to. Plain data
//! with the time passed in.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use outpost_journal::Seq;

/// How many of them may wait; what is beyond is not waited for.
const MAX_WAITING: usize = 4096;

/// What was heard of processes before anybody attached to them. For a while it
/// isn't acknowledged, so that whoever attaches finds all of it. Then they are
/// let go: a process must not wait for a client that doesn't listen.
#[derive(Debug)]
pub(super) struct Unattended {
    patience: Duration,
    waiting: HashMap<String, Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    last: Seq,
    closed: bool,
    until: Instant,
}

/// A process that nobody has attached to in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LetGo {
    pub(super) id: String,
    /// The last event that was heard of it.
    pub(super) last: Seq,
    pub(super) closed: bool,
}

impl Unattended {
    pub(super) fn new(patience: Duration) -> Self {
        Unattended {
            patience,
            waiting: HashMap::new(),
        }
    }

    /// Something was heard of a process that nobody knows. Says until when it is
    /// waited for, or that there is no room to wait.
    pub(super) fn heard(
        &mut self,
        id: &str,
        seq: Seq,
        closed: bool,
        now: Instant,
    ) -> Option<Instant> {
        if !self.waiting.contains_key(id) && self.waiting.len() >= MAX_WAITING {
            return None;
        }
        let until = now + self.patience;
        let waiting = self.waiting.entry(id.to_owned()).or_insert(Waiting {
            last: seq,
            closed,
            until,
        });
        waiting.last = waiting.last.max(seq);
        waiting.closed |= closed;
        Some(waiting.until)
    }

    /// Somebody has attached to it, who acknowledges for itself.
    pub(super) fn attached(&mut self, id: &str) {
        self.waiting.remove(id);
    }

    /// When to look for those whose time is over.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.values().map(|waiting| waiting.until).min()
    }

    /// Those whose time is over.
    pub(super) fn over(&mut self, now: Instant) -> Vec<LetGo> {
        let over = self.waiting.extract_if(|_, waiting| waiting.until <= now);
        over.map(|(id, waiting)| LetGo {
            id,
            last: waiting.last,
            closed: waiting.closed,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn the_first_word_sets_the_time_and_the_last_the_number() {
        let start = Instant::now();
        let mut unattended = Unattended::new(PATIENCE);
        assert_eq!(unattended.next(), None);
        unattended.heard("p", Seq(3), false, start);
        let later = start + Duration::from_secs(4);
        assert_eq!(
            unattended.heard("p", Seq(5), true, later),
            Some(start + PATIENCE)
        );
        assert_eq!(unattended.over(later), []);
        let let_go = LetGo {
            id: "p".to_owned(),
            last: Seq(5),
            closed: true,
        };
        assert_eq!(unattended.over(start + PATIENCE), [let_go]);
        assert_eq!(unattended.next(), None);
    }

    #[test]
    fn who_is_attached_to_is_not_let_go() {
        let now = Instant::now();
        let mut unattended = Unattended::new(PATIENCE);
        unattended.heard("p", Seq(3), false, now);
        unattended.attached("p");
        assert_eq!(unattended.over(now + PATIENCE), []);
    }

    #[test]
    fn there_is_an_end_to_waiting() {
        let now = Instant::now();
        let mut unattended = Unattended::new(PATIENCE);
        for number in 0..MAX_WAITING {
            assert!(
                unattended
                    .heard(&number.to_string(), Seq(1), false, now)
                    .is_some()
            );
        }
        assert_eq!(unattended.heard("more", Seq(1), false, now), None);
        assert!(unattended.heard("0", Seq(2), false, now).is_some());
    }
}
