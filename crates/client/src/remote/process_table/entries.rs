//! The state of each process id of a session. Pure: time is passed in.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use outpost_journal::Seq;

/// Maximum number of orphaned ids. The oldest are forgotten first.
const MAX_ORPHANED: usize = 1024;

/// Maximum number of unclaimed processes. Events of further unclaimed processes are not held back.
const MAX_UNCLAIMED: usize = 4096;

/// The state of a process id. `P` is a followed process.
#[derive(Debug)]
enum Entry<P> {
    /// Events are assembled for readers in this program.
    Followed(P),
    /// The process was dropped or has failed, or its start was abandoned. Its events are
    /// acknowledged and discarded until it closes.
    Orphaned,
    /// The process belongs to a resumed session, and no caller has attached to it. Its events
    /// are not acknowledged until it expires, so that a caller can still get all of them.
    Unclaimed(Unclaimed),
}

/// A process that no caller has attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unclaimed {
    /// The last event received.
    pub(super) last: Seq,
    pub(super) closed: bool,
    expires: Instant,
}

/// The recipient of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EventRoute<P> {
    Followed(P),
    /// The event is acknowledged and discarded.
    Orphaned,
    /// The acknowledgement is held back until the process expires.
    Unclaimed,
    /// No caller has attached, and too many acknowledgements are held back already.
    TooMany,
    /// Pushed, and no caller has attached.
    None,
}

/// The processes of a session by id.
#[derive(Debug)]
pub(super) struct Entries<P> {
    attach_timeout: Duration,
    entries: HashMap<String, Entry<P>>,
    /// Orphaned ids, oldest first. May contain ids that are no longer orphaned.
    orphan_order: VecDeque<String>,
    unclaimed: usize,
    /// Processes to terminate until the server confirms it, oldest first.
    terminations: Vec<String>,
}

impl<P> Entries<P> {
    pub(super) fn new(attach_timeout: Duration) -> Self {
        Entries {
            attach_timeout,
            entries: HashMap::new(),
            orphan_order: VecDeque::new(),
            unclaimed: 0,
            terminations: Vec::new(),
        }
    }

    /// Returns a followed process.
    pub(super) fn get(&self, id: &str) -> Option<&P> {
        match self.entries.get(id)? {
            Entry::Followed(process) => Some(process),
            Entry::Orphaned | Entry::Unclaimed(_) => None,
        }
    }

    pub(super) fn followed(&self) -> impl Iterator<Item = &P> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Followed(process) => Some(process),
            Entry::Orphaned | Entry::Unclaimed(_) => None,
        })
    }

    /// Follows a process, whatever the state of its id was.
    pub(super) fn insert(&mut self, id: &str, process: P) {
        self.set(id, Entry::Followed(process));
    }

    /// Removes a followed process that fulfils the condition.
    pub(super) fn remove_if(&mut self, id: &str, condition: impl FnOnce(&P) -> bool) {
        if self.get(id).is_some_and(condition) {
            self.entries.remove(id);
        }
    }

    /// Removes all followed processes.
    pub(super) fn drain_followed(&mut self) -> Vec<P> {
        let followed = |_: &String, entry: &mut Entry<P>| matches!(entry, Entry::Followed(_));
        let removed = self.entries.extract_if(followed);
        removed
            .filter_map(|(_, entry)| match entry {
                Entry::Followed(process) => Some(process),
                Entry::Orphaned | Entry::Unclaimed(_) => None,
            })
            .collect()
    }

    /// Discards the events of a process from now on, unless its id is followed.
    pub(super) fn orphan(&mut self, id: &str) {
        if self.is_orphaned(id) || self.get(id).is_some() {
            return;
        }
        self.set(id, Entry::Orphaned);
        self.orphan_order.push_back(id.to_owned());
        if self.orphan_order.len() > MAX_ORPHANED
            && let Some(oldest) = self.orphan_order.pop_front()
        {
            self.close_orphan(&oldest);
        }
    }

    pub(super) fn is_orphaned(&self, id: &str) -> bool {
        matches!(self.entries.get(id), Some(Entry::Orphaned))
    }

    /// Removes an orphan that has closed. Returns whether it was one.
    pub(super) fn close_orphan(&mut self, id: &str) -> bool {
        let orphaned = self.is_orphaned(id);
        if orphaned {
            self.entries.remove(id);
        }
        orphaned
    }

    /// Decides who receives an event. One call under one lock: a process that is attached
    /// meanwhile must not be overwritten by the state of an unclaimed one.
    pub(super) fn route(
        &mut self,
        id: &str,
        seq: Seq,
        closed: bool,
        acked: bool,
        now: Instant,
    ) -> EventRoute<P>
    where
        P: Clone,
    {
        match self.entries.get_mut(id) {
            Some(Entry::Followed(process)) => EventRoute::Followed(process.clone()),
            Some(Entry::Orphaned) => {
                if closed {
                    self.close_orphan(id);
                }
                EventRoute::Orphaned
            }
            _ if !acked => EventRoute::None,
            Some(Entry::Unclaimed(unclaimed)) => {
                unclaimed.last = unclaimed.last.max(seq);
                unclaimed.closed |= closed;
                EventRoute::Unclaimed
            }
            _ if self.unclaimed >= MAX_UNCLAIMED => EventRoute::TooMany,
            _ => {
                let unclaimed = Unclaimed {
                    last: seq,
                    closed,
                    expires: now + self.attach_timeout,
                };
                self.set(id, Entry::Unclaimed(unclaimed));
                self.unclaimed += 1;
                EventRoute::Unclaimed
            }
        }
    }

    /// Returns when the next unclaimed process expires.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        if self.unclaimed == 0 {
            return None;
        }
        let expiries = self.entries.values().filter_map(|entry| match entry {
            Entry::Unclaimed(unclaimed) => Some(unclaimed.expires),
            Entry::Followed(_) | Entry::Orphaned => None,
        });
        expiries.min()
    }

    /// Removes the unclaimed processes that have expired. Those that are not closed become
    /// orphans.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<(String, Unclaimed)> {
        let entries = self.entries.iter();
        let expired = entries.filter_map(|(id, entry)| match entry {
            Entry::Unclaimed(unclaimed) if unclaimed.expires <= now => {
                Some((id.clone(), *unclaimed))
            }
            _ => None,
        });
        let expired: Vec<_> = expired.collect();
        self.unclaimed -= expired.len();
        for (id, unclaimed) in &expired {
            self.entries.remove(id);
            if !unclaimed.closed {
                self.orphan(id);
            }
        }
        expired
    }

    /// Remembers a process to terminate.
    pub(super) fn add_termination(&mut self, id: &str) {
        if !self.terminations.iter().any(|known| known == id) {
            self.terminations.push(id.to_owned());
        }
    }

    /// Returns the processes to terminate.
    pub(super) fn terminations(&self) -> &[String] {
        &self.terminations
    }

    /// Discards the events of a process again that still has to be terminated.
    pub(super) fn orphan_if_terminating(&mut self, id: &str) {
        if self.terminations.iter().any(|known| known == id) {
            self.orphan(id);
        }
    }

    /// Forgets a termination that the server has confirmed.
    pub(super) fn remove_termination(&mut self, id: &str) {
        self.terminations.retain(|known| known != id);
    }

    fn set(&mut self, id: &str, entry: Entry<P>) {
        let before = self.entries.insert(id.to_owned(), entry);
        if let Some(Entry::Unclaimed(_)) = before {
            self.unclaimed -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    fn entries() -> Entries<()> {
        Entries::new(TIMEOUT)
    }

    #[test]
    fn event_of_a_followed_process_does_not_replace_it() {
        let mut entries = entries();
        let now = Instant::now();
        entries.insert("p", ());
        assert_eq!(
            entries.route("p", Seq(1), false, true, now),
            EventRoute::Followed(())
        );
        assert!(entries.get("p").is_some());
        assert_eq!(entries.next_expiry(), None);
    }

    #[test]
    fn orphaning_a_start_keeps_a_retry_with_the_same_id() {
        let mut entries = entries();
        entries.insert("p", ());
        entries.orphan("p");
        entries.add_termination("p");
        assert!(entries.get("p").is_some());
    }

    #[test]
    fn termination_is_listed_once_until_confirmed() {
        let mut entries = entries();
        entries.add_termination("a");
        entries.add_termination("a");
        assert_eq!(entries.terminations(), ["a"]);
        entries.remove_termination("a");
        assert!(entries.terminations().is_empty());
    }

    #[test]
    fn orphan_is_removed_by_its_close() {
        let mut entries = entries();
        entries.orphan("a");
        assert!(entries.is_orphaned("a"));
        assert!(entries.close_orphan("a"));
        assert!(!entries.close_orphan("a"));
    }

    #[test]
    fn orphans_are_bounded() {
        let mut entries = entries();
        for number in 0..=MAX_ORPHANED {
            entries.orphan(&number.to_string());
        }
        assert!(!entries.close_orphan("0"));
        assert!(entries.close_orphan("1"));
    }

    #[test]
    fn followed_process_is_not_orphaned() {
        let mut entries = entries();
        entries.orphan("p");
        entries.insert("p", ());
        entries.orphan("p");
        assert!(!entries.is_orphaned("p"));
        assert!(!entries.close_orphan("p"));
        assert_eq!(entries.drain_followed(), [()]);
        assert_eq!(entries.get("p"), None);
    }

    #[test]
    fn first_event_sets_the_expiry_and_last_event_the_number() {
        let start = Instant::now();
        let mut entries = entries();
        assert_eq!(entries.next_expiry(), None);
        entries.route("p", Seq(3), false, true, start);
        let later = start + Duration::from_secs(4);
        assert_eq!(
            entries.route("p", Seq(5), true, true, later),
            EventRoute::Unclaimed
        );
        assert_eq!(entries.next_expiry(), Some(start + TIMEOUT));
        assert_eq!(entries.expire(later), []);
        let expired = Unclaimed {
            last: Seq(5),
            closed: true,
            expires: start + TIMEOUT,
        };
        assert_eq!(entries.expire(start + TIMEOUT), [("p".to_owned(), expired)]);
        assert_eq!(entries.next_expiry(), None);
        assert!(!entries.is_orphaned("p"), "it has closed");
    }

    #[test]
    fn expired_process_becomes_an_orphan() {
        let now = Instant::now();
        let mut entries = entries();
        entries.route("p", Seq(3), false, true, now);
        assert_eq!(entries.expire(now + TIMEOUT).len(), 1);
        assert!(entries.is_orphaned("p"));
    }

    #[test]
    fn claimed_process_does_not_expire() {
        let now = Instant::now();
        let mut entries = entries();
        entries.route("p", Seq(3), false, true, now);
        entries.insert("p", ());
        assert_eq!(entries.next_expiry(), None);
        assert_eq!(entries.expire(now + TIMEOUT), []);
        assert_eq!(entries.get("p"), Some(&()));
    }

    #[test]
    fn unclaimed_processes_are_bounded() {
        let now = Instant::now();
        let mut entries = entries();
        for number in 0..MAX_UNCLAIMED {
            let recipient = entries.route(&number.to_string(), Seq(1), false, true, now);
            assert_eq!(recipient, EventRoute::Unclaimed);
        }
        assert_eq!(
            entries.route("more", Seq(1), false, true, now),
            EventRoute::TooMany
        );
        assert_eq!(
            entries.route("0", Seq(2), false, true, now),
            EventRoute::Unclaimed
        );
    }
}
