//! Decides which events to acknowledge, and when. Pure: time is passed in.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Instant,
};

use outpost_journal::Seq;

use crate::RemoteLimits;

/// Maximum number of acknowledged `closed` events to repeat when a session is resumed.
const MAX_CLOSED: usize = 1024;

/// Outstanding acknowledgements by process.
#[derive(Debug)]
pub(super) struct Acks {
    limits: RemoteLimits,
    outstanding: HashMap<String, Outstanding>,
    /// A lower bound of the due times.
    next_due: Option<Instant>,
    /// The `closed` events that were acknowledged on this connection. If the connection is lost, the
    /// server may not have received these acknowledgements.
    closed: VecDeque<(String, Seq)>,
}

/// An acknowledgement that has not been sent yet.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    seq: Seq,
    bytes: usize,
    closed: bool,
    due: Instant,
}

impl Acks {
    pub(super) fn new(limits: RemoteLimits) -> Self {
        Acks {
            limits,
            outstanding: HashMap::new(),
            next_due: None,
            closed: VecDeque::new(),
        }
    }

    /// Adds an acknowledgement of all events up to `seq`, with `bytes` new bytes. Returns when it
    /// is due.
    ///
    /// A small number of bytes is acknowledged after a short delay, because the server's window may be
    /// small. A `closed` event is acknowledged after a longer delay, because no process waits for it.
    pub(super) fn add(
        &mut self,
        id: &str,
        seq: Seq,
        bytes: usize,
        closed: bool,
        now: Instant,
    ) -> Instant {
        let ack = match self.outstanding.get_mut(id) {
            Some(ack) => ack,
            None => self
                .outstanding
                .entry(id.to_owned())
                .or_insert(Outstanding {
                    seq,
                    bytes: 0,
                    closed: false,
                    due: now + self.limits.ack_delay,
                }),
        };
        ack.seq = ack.seq.max(seq);
        ack.bytes += bytes;
        if closed && !ack.closed {
            ack.closed = true;
            ack.due = now + self.limits.close_ack_delay;
        } else if ack.bytes >= self.limits.ack_bytes && !ack.closed {
            ack.due = now;
        }
        let due = ack.due;
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
        due
    }

    /// Returns when to call [`Self::take_due`] next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.next_due
    }

    /// Removes and returns the acknowledgements that are due. If any is due, also returns those of
    /// `closed` events, to save messages.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(String, Seq)> {
        let any = self.outstanding.values().any(|ack| ack.due <= now);
        let due: Vec<_> = self
            .outstanding
            .extract_if(|_, ack| any && (ack.closed || ack.due <= now))
            .collect();
        self.update_next_due();
        for (id, ack) in due.iter().filter(|(_, ack)| ack.closed) {
            self.closed.push_back((id.clone(), ack.seq));
            if self.closed.len() > MAX_CLOSED {
                self.closed.pop_front();
            }
        }
        due.into_iter().map(|(id, ack)| (id, ack.seq)).collect()
    }

    /// Returns the `closed` events to include in the cursors of a resumed session, because their
    /// acknowledgement is outstanding or may have been lost.
    pub(super) fn closed(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let outstanding = self.outstanding.iter().filter(|(_, ack)| ack.closed);
        let outstanding = outstanding.map(|(id, ack)| (id.clone(), ack.seq.0));
        let sent = self.closed.iter().map(|(id, seq)| (id.clone(), seq.0));
        sent.chain(outstanding)
    }

    /// Drops the `closed` events that were part of the cursors `from` of a resumed session.
    pub(super) fn resumed(&mut self, from: &BTreeMap<String, u64>) {
        let is_sent = |id: &str, seq: Seq| from.get(id).is_some_and(|from| *from >= seq.0);
        self.closed.retain(|(id, seq)| !is_sent(id, *seq));
        self.outstanding
            .retain(|id, ack| !(ack.closed && is_sent(id, ack.seq)));
        self.update_next_due();
    }

    fn update_next_due(&mut self) {
        self.next_due = self.outstanding.values().map(|ack| ack.due).min();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DELAY: Duration = Duration::from_millis(50);
    const CLOSE_DELAY: Duration = Duration::from_secs(1);

    fn acks() -> Acks {
        Acks::new(RemoteLimits {
            ack_bytes: 100,
            ack_delay: DELAY,
            close_ack_delay: CLOSE_DELAY,
            ..RemoteLimits::default()
        })
    }

    fn due(acks: &mut Acks, now: Instant) -> Vec<(String, u64)> {
        let mut due: Vec<_> = acks
            .take_due(now)
            .into_iter()
            .map(|(id, seq)| (id, seq.0))
            .collect();
        due.sort();
        due
    }

    #[test]
    fn large_amounts_are_acknowledged_at_once_and_small_ones_later() {
        let now = Instant::now();
        let mut acks = acks();
        assert_eq!(acks.add("a", Seq(1), 60, false, now), now + DELAY);
        assert_eq!(due(&mut acks, now), []);
        assert_eq!(acks.add("a", Seq(2), 60, false, now), now);
        assert_eq!(due(&mut acks, now), [("a".to_owned(), 2)]);
        assert_eq!(acks.next_due(), None);
        acks.add("a", Seq(3), 1, false, now);
        let later = now + DELAY;
        assert_eq!(due(&mut acks, later), [("a".to_owned(), 3)]);
    }

    #[test]
    fn close_is_sent_with_another_acknowledgement() {
        let now = Instant::now();
        let mut acks = acks();
        acks.add("short", Seq(1), 5, false, now);
        assert_eq!(
            acks.add("short", Seq(3), 0, true, now),
            now + CLOSE_DELAY,
            "a closed process does not wait"
        );
        assert_eq!(due(&mut acks, now + DELAY), []);
        assert_eq!(acks.next_due(), Some(now + CLOSE_DELAY));
        acks.add("busy", Seq(9), 100, false, now);
        assert_eq!(
            due(&mut acks, now),
            [("busy".to_owned(), 9), ("short".to_owned(), 3)]
        );
    }

    #[test]
    fn closes_are_repeated_until_a_session_is_resumed_with_them() {
        let now = Instant::now();
        let mut acks = acks();
        acks.add("sent", Seq(3), 0, true, now);
        acks.take_due(now + CLOSE_DELAY);
        acks.add("owed", Seq(4), 0, true, now);
        acks.add("open", Seq(5), 1, false, now);
        let mut closed: Vec<_> = acks.closed().collect();
        closed.sort();
        assert_eq!(closed, [("owed".to_owned(), 4), ("sent".to_owned(), 3)]);
        let sent = closed.into_iter().collect();
        acks.add("late", Seq(6), 0, true, now);
        acks.resumed(&sent);
        let closed: Vec<_> = acks.closed().collect();
        assert_eq!(
            closed,
            [("late".to_owned(), 6)],
            "it was not in the request"
        );
        assert_eq!(
            due(&mut acks, now + DELAY),
            [("late".to_owned(), 6), ("open".to_owned(), 5)]
        );
    }
}
