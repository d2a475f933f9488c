//! What is to be acknowledged, and when. Plain data with the time passed in.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::{Duration, Instant},
};

use outpost_journal::Seq;

/// How many closes are remembered whose acknowledgement may have been lost.
const MAX_CLOSES: usize = 1024;

/// When something is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) bytes: usize,
    pub(super) within: Duration,
    pub(super) close_within: Duration,
}

/// Acknowledgements that are owed, by process.
#[derive(Debug)]
pub(super) struct Acks {
    policy: Policy,
    owed: HashMap<String, Owed>,
    /// Nothing is due before this; something may be a little later.
    soonest: Option<Instant>,
    /// Closes that were acknowledged on this connection, which may be lost with
    /// it.
    closes: VecDeque<(String, Seq)>,
}

#[derive(Clone, Copy, Debug)]
struct Owed {
    seq: Seq,
    bytes: usize,
    closed: bool,
    at: Instant,
}

impl Acks {
    pub(super) fn new(policy: Policy) -> Self {
        Acks {
            policy,
            owed: HashMap::new(),
            soonest: None,
            closes: VecDeque::new(),
        }
    }

    /// Everything of a process up to `seq` may be acknowledged, `bytes` of it
    /// for the first time. Says when to look again at the latest.
    ///
    /// The server may have a smaller window than anybody would expect, so what
    /// isn't much is acknowledged too, a little later. A process that is closed
    /// waits for nothing.
    pub(super) fn owe(
        &mut self,
        id: &str,
        seq: Seq,
        bytes: usize,
        closed: bool,
        now: Instant,
    ) -> Instant {
        let policy = self.policy;
        if !self.owed.contains_key(id) {
            let first = Owed {
                seq,
                bytes: 0,
                closed: false,
                at: now + policy.within,
            };
            self.owed.insert(id.to_owned(), first);
        }
        let Some(owed) = self.owed.get_mut(id) else {
            unreachable!("it was put there just now");
        };
        owed.seq = owed.seq.max(seq);
        owed.bytes += bytes;
        if closed && !owed.closed {
            owed.closed = true;
            owed.at = now + policy.close_within;
        } else if owed.bytes >= policy.bytes && !owed.closed {
            owed.at = now;
        }
        let at = owed.at;
        self.soonest = Some(self.soonest.map_or(at, |soonest| soonest.min(at)));
        at
    }

    /// When to look for what is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.soonest
    }

    /// What is due now. Once something is, closes go with it: one more costs
    /// next to nothing.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(String, Seq)> {
        let any = self.owed.values().any(|owed| owed.at <= now);
        let due: Vec<_> = self
            .owed
            .extract_if(|_, owed| any && (owed.closed || owed.at <= now))
            .collect();
        self.soonest = self.owed.values().map(|owed| owed.at).min();
        for (id, owed) in due.iter().filter(|(_, owed)| owed.closed) {
            self.closes.push_back((id.clone(), owed.seq));
            if self.closes.len() > MAX_CLOSES {
                self.closes.pop_front();
            }
        }
        due.into_iter().map(|(id, owed)| (id, owed.seq)).collect()
    }

    /// The connection is lost, and what was acknowledged on it may be: where to
    /// resume the closed ones from.
    pub(super) fn closes(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let owed = self.owed.iter().filter(|(_, owed)| owed.closed);
        let owed = owed.map(|(id, owed)| (id.clone(), owed.seq.0));
        let sent = self.closes.iter().map(|(id, seq)| (id.clone(), seq.0));
        sent.chain(owed)
    }

    /// A session was resumed from there: the closes that it was told of are
    /// acknowledged. Others may have come since.
    pub(super) fn resumed(&mut self, from: &BTreeMap<String, u64>) {
        let told = |id: &str, seq: Seq| from.get(id).is_some_and(|from| *from >= seq.0);
        self.closes.retain(|(id, seq)| !told(id, *seq));
        self.owed
            .retain(|id, owed| !(owed.closed && told(id, owed.seq)));
        self.soonest = self.owed.values().map(|owed| owed.at).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        bytes: 100,
        within: Duration::from_millis(50),
        close_within: Duration::from_secs(1),
    };

    fn due(acks: &mut Acks, now: Instant) -> Vec<(String, u64)> {
        let mut due: Vec<_> = acks
            .due(now)
            .into_iter()
            .map(|(id, seq)| (id, seq.0))
            .collect();
        due.sort();
        due
    }

    #[test]
    fn much_at_once_and_little_later() {
        let now = Instant::now();
        let mut acks = Acks::new(POLICY);
        assert_eq!(acks.owe("a", Seq(1), 60, false, now), now + POLICY.within);
        assert_eq!(due(&mut acks, now), []);
        assert_eq!(acks.owe("a", Seq(2), 60, false, now), now);
        assert_eq!(due(&mut acks, now), [("a".to_owned(), 2)]);
        assert_eq!(acks.next(), None);
        acks.owe("a", Seq(3), 1, false, now);
        let later = now + POLICY.within;
        assert_eq!(due(&mut acks, later), [("a".to_owned(), 3)]);
    }

    #[test]
    fn a_close_waits_for_company() {
        let now = Instant::now();
        let mut acks = Acks::new(POLICY);
        acks.owe("short", Seq(1), 5, false, now);
        assert_eq!(
            acks.owe("short", Seq(3), 0, true, now),
            now + POLICY.close_within,
            "nothing waits for it any more"
        );
        assert_eq!(due(&mut acks, now + POLICY.within), []);
        assert_eq!(acks.next(), Some(now + POLICY.close_within));
        acks.owe("busy", Seq(9), 100, false, now);
        assert_eq!(
            due(&mut acks, now),
            [("busy".to_owned(), 9), ("short".to_owned(), 3)]
        );
    }

    #[test]
    fn closes_are_said_again_until_a_session_was_resumed_with_them() {
        let now = Instant::now();
        let mut acks = Acks::new(POLICY);
        acks.owe("sent", Seq(3), 0, true, now);
        acks.due(now + POLICY.close_within);
        acks.owe("owed", Seq(4), 0, true, now);
        acks.owe("open", Seq(5), 1, false, now);
        let mut closes: Vec<_> = acks.closes().collect();
        closes.sort();
        assert_eq!(closes, [("owed".to_owned(), 4), ("sent".to_owned(), 3)]);
        let told = closes.into_iter().collect();
        acks.owe("late", Seq(6), 0, true, now);
        acks.resumed(&told);
        let closes: Vec<_> = acks.closes().collect();
        assert_eq!(closes, [("late".to_owned(), 6)], "which nobody was told of");
        assert_eq!(
            due(&mut acks, now + POLICY.within),
            [("late".to_owned(), 6), ("open".to_owned(), 5)]
        );
    }
}
