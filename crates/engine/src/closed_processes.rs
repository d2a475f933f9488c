//! Retention of closed processes: bounded by age, count and bytes. Pure: time is passed in.
//!
//! An exit code matters for longer than old output. If there are too many bytes, output is evicted, but
//! no process: the largest log is halved, down to a tail, until all logs fit; tails are evicted last. If
//! there are too many processes, the oldest process of a session is evicted. In both cases the victim is
//! the session with the highest usage, of the peer with the highest usage, so that no client evicts the
//! results of another client. All output of that peer, tails included, is evicted before any output of a
//! peer that uses less.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, VecDeque},
    time::{Duration, Instant},
};

use crate::{Peer, clock};

/// The limits of closed processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosedLimits {
    pub(crate) retention: Duration,
    pub(crate) max_items: usize,
    pub(crate) max_bytes: u64,
}

/// The session that a closed process belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosedOwner {
    pub(crate) peer: Peer,
    /// Unique among all sessions.
    pub(crate) session: usize,
}

/// Closed processes of all sessions. `T` identifies a process.
#[derive(Debug)]
pub(crate) struct ClosedProcesses<T> {
    limits: ClosedLimits,
    /// By the order in which they were closed.
    items: BTreeMap<u64, Item<T>>,
    pushed: u64,
    sessions: HashMap<usize, SessionShare>,
    peers: HashMap<Peer, Usage>,
    bytes: u64,
}

/// A closed process and the bytes that it retains.
#[derive(Debug)]
struct Item<T> {
    owner: ClosedOwner,
    expires: Instant,
    bytes: u64,
    /// Whether the output cannot be halved: it is a single chunk.
    is_minimal: bool,
    process: T,
}

/// The number and bytes of the closed processes of a peer.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    items: usize,
    bytes: u64,
}

/// The closed processes of one session.
#[derive(Debug)]
struct SessionShare {
    peer: Peer,
    /// The keys of its items, oldest first.
    items: VecDeque<u64>,
    bytes: u64,
    /// How many of the oldest items have lost their tail.
    dropped: usize,
}

impl<T> ClosedProcesses<T> {
    pub(crate) fn new(limits: ClosedLimits) -> Self {
        ClosedProcesses {
            limits,
            items: BTreeMap::new(),
            pushed: 0,
            sessions: HashMap::new(),
            peers: HashMap::new(),
            bytes: 0,
        }
    }

    /// Adds a process that retains this many bytes of output.
    pub(crate) fn push(&mut self, now: Instant, owner: ClosedOwner, process: T, bytes: u64) {
        self.pushed += 1;
        let item = Item {
            owner,
            expires: clock::after(now, self.limits.retention),
            bytes,
            is_minimal: false,
            process,
        };
        self.items.insert(self.pushed, item);
        let share = self.sessions.entry(owner.session);
        let share = share.or_insert_with(|| SessionShare {
            peer: owner.peer,
            items: VecDeque::new(),
            bytes: 0,
            dropped: 0,
        });
        share.items.push_back(self.pushed);
        share.bytes += bytes;
        let usage = self.peers.entry(owner.peer).or_default();
        usage.items += 1;
        usage.bytes += bytes;
        self.bytes += bytes;
    }

    /// Removes expired processes, and further processes while there are too many. While there are too
    /// many bytes, calls `limit_retention` with a process and the bytes that the process may keep;
    /// `limit_retention` returns the bytes that the process still retains.
    pub(crate) fn take_expired(
        &mut self,
        now: Instant,
        mut limit_retention: impl FnMut(&T, u64) -> u64,
    ) -> Vec<T> {
        let mut taken = Vec::new();
        while let Some((_, oldest)) = self.items.first_key_value()
            && oldest.expires <= now
        {
            let session = oldest.owner.session;
            taken.extend(self.pop(session));
        }
        while self.items.len() > self.limits.max_items {
            let usage =
                |peer: Usage, share: &SessionShare| (peer.items as u64, share.items.len() as u64);
            let largest = self.largest_session(|_| true, usage);
            taken.extend(largest.and_then(|session| self.pop(session)));
        }
        // The tails of all processes together fit the limit.
        let tail = self.limits.max_bytes / (self.limits.max_items as u64).max(1);
        self.cut_output(tail, &mut limit_retention);
        taken
    }

    /// When the oldest process expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        let oldest = self.items.first_key_value();
        oldest.map(|(_, oldest)| oldest.expires)
    }

    /// Evicts output of the peer with the highest usage while there are too many bytes: halves the
    /// largest log of its session with the highest usage. Once only tails are left, drops them, oldest
    /// first.
    fn cut_output(&mut self, tail: u64, limit_retention: &mut impl FnMut(&T, u64) -> u64) {
        let usage = |peer: Usage, share: &SessionShare| (peer.bytes, share.bytes);
        while self.bytes > self.limits.max_bytes {
            let has_output = |share: &SessionShare| share.dropped < share.items.len();
            let Some(largest) = self.largest_session(has_output, usage) else {
                return;
            };
            let peer = self.sessions.get(&largest).map(|share| share.peer);
            let can_halve = |share: &SessionShare| {
                Some(share.peer) == peer && self.largest_item(share, tail).is_some()
            };
            let halved = self.largest_session(can_halve, usage);
            let share = halved.and_then(|session| self.sessions.get(&session));
            if let Some(key) = share.and_then(|share| self.largest_item(share, tail)) {
                let keep = self.items.get(&key).map_or(0, |item| item.bytes / 2);
                self.cut(key, keep.max(tail), limit_retention);
            } else if let Some(share) = self.sessions.get_mut(&largest) {
                let key = share.items[share.dropped];
                share.dropped += 1;
                self.cut(key, 0, limit_retention);
            }
        }
    }

    /// The oldest among the largest items of a session that exceed a tail.
    fn largest_item(&self, share: &SessionShare, tail: u64) -> Option<u64> {
        let items = share.items.iter().filter_map(|key| {
            let item = self.items.get(key)?;
            (item.bytes > tail && !item.is_minimal).then_some((item.bytes, Reverse(*key)))
        });
        items.max().map(|(_, Reverse(key))| key)
    }

    /// Cuts the output of a process to about `keep` bytes.
    fn cut(&mut self, key: u64, keep: u64, limit_retention: &mut impl FnMut(&T, u64) -> u64) {
        let Some(item) = self.items.get_mut(&key) else {
            return;
        };
        let left = limit_retention(&item.process, keep).min(item.bytes);
        let freed = item.bytes - left;
        item.is_minimal = freed == 0;
        item.bytes = left;
        self.bytes -= freed;
        if let Some(share) = self.sessions.get_mut(&item.owner.session) {
            share.bytes -= freed;
        }
        if let Some(usage) = self.peers.get_mut(&item.owner.peer) {
            usage.bytes -= freed;
        }
    }

    /// Returns the session with the highest usage, of the peer with the highest usage, among the
    /// eligible sessions. Of sessions with equal usage, returns the session with the oldest process.
    fn largest_session(
        &self,
        eligible: impl Fn(&SessionShare) -> bool,
        usage: impl Fn(Usage, &SessionShare) -> (u64, u64),
    ) -> Option<usize> {
        let eligible = self.sessions.iter().filter(|(_, share)| eligible(share));
        let largest = eligible.max_by_key(|(_, share)| {
            let peer = self.peers.get(&share.peer).copied().unwrap_or_default();
            (usage(peer, share), Reverse(share.items.front()))
        });
        largest.map(|(session, _)| *session)
    }

    /// Removes the oldest process of a session.
    fn pop(&mut self, session: usize) -> Option<T> {
        let share = self.sessions.get_mut(&session)?;
        let item = self.items.remove(&share.items.pop_front()?)?;
        share.bytes -= item.bytes;
        share.dropped = share.dropped.saturating_sub(1);
        if share.items.is_empty() {
            self.sessions.remove(&session);
        }
        self.bytes -= item.bytes;
        if let Some(usage) = self.peers.get_mut(&item.owner.peer) {
            usage.items -= 1;
            usage.bytes -= item.bytes;
            if usage.items == 0 {
                self.peers.remove(&item.owner.peer);
            }
        }
        Some(item.process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn closed(max_items: usize, max_bytes: u64) -> ClosedProcesses<u32> {
        ClosedProcesses::new(ClosedLimits {
            retention: 30 * SECOND,
            max_items,
            max_bytes,
        })
    }

    fn owner(user: u32, session: usize) -> ClosedOwner {
        let peer = Peer::User(user);
        ClosedOwner { peer, session }
    }

    /// Takes expired processes, and records how output was cut, as (process, kept bytes).
    fn take(closed: &mut ClosedProcesses<u32>, now: Instant) -> (Vec<u32>, Vec<(u32, u64)>) {
        let mut cuts = Vec::new();
        let taken = closed.take_expired(now, |process, keep| {
            cuts.push((*process, keep));
            keep
        });
        (taken, cuts)
    }

    #[test]
    fn longest_retention_never_expires() {
        let now = Instant::now();
        let mut closed = closed(3, 100);
        closed.limits.retention = Duration::MAX;
        closed.push(now, owner(1, 1), 1, 10);
        let later = now + Duration::from_secs(1_000_000_000);
        assert!(take(&mut closed, later).0.is_empty());
    }

    #[test]
    fn processes_expire_by_age_and_count() {
        let now = Instant::now();
        let mut closed = closed(3, 1000);
        for process in 1..=4 {
            closed.push(now, owner(1, 1), process, 10);
        }
        assert_eq!(take(&mut closed, now), (vec![1], vec![]), "by count");
        closed.push(now + SECOND, owner(1, 1), 5, 75);
        assert_eq!(take(&mut closed, now + SECOND).0, [2]);
        assert_eq!(closed.next_expiry(), Some(now + 30 * SECOND));
        assert_eq!(take(&mut closed, now + 30 * SECOND).0, [3, 4], "by age");
        assert_eq!(take(&mut closed, now + 31 * SECOND).0, [5]);
        assert_eq!(closed.next_expiry(), None);
        assert_eq!(
            (closed.bytes, closed.peers.len(), closed.sessions.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn lack_of_bytes_costs_output_and_no_process() {
        let now = Instant::now();
        let mut closed = closed(10, 100);
        // The small one is the oldest and keeps its output.
        closed.push(now, owner(1, 1), 1, 5);
        for process in 2..=4 {
            closed.push(now, owner(1, 1), process, 40);
        }
        assert_eq!(
            take(&mut closed, now),
            (vec![], vec![(2, 20), (3, 20)]),
            "the oldest of the largest"
        );
        closed.push(now, owner(1, 1), 5, 90);
        assert_eq!(
            take(&mut closed, now),
            (vec![], vec![(5, 45), (5, 22), (4, 20)])
        );
        assert_eq!(closed.bytes, 87);
        assert_eq!(closed.items.len(), 5);
    }

    /// The newest results are not lost while older results are kept in full.
    #[test]
    fn large_outputs_of_several_sessions_are_cut_alike() {
        let now = Instant::now();
        let mut closed = closed(4096, 24 * 1024);
        for session in 1..=4 {
            closed.push(now, owner(1, session), session as u32, 16 * 1024);
            take(&mut closed, now);
        }
        let kept: Vec<_> = closed.items.values().map(|item| item.bytes).collect();
        assert!(kept.iter().all(|bytes| *bytes >= 4 * 1024), "{kept:?}");
    }

    #[test]
    fn output_tails_are_evicted_last() {
        let now = Instant::now();
        let mut closed = closed(2, 10);
        closed.push(now, owner(1, 1), 1, 8);
        closed.push(now, owner(1, 1), 2, 8);
        // Whole chunks are kept, which may be more than the tail.
        let mut cuts = Vec::new();
        let taken = closed.take_expired(now, |process, keep| {
            cuts.push((*process, keep));
            if keep == 0 { 0 } else { 7 }
        });
        assert_eq!(
            (taken, cuts),
            (vec![], vec![(1, 5), (2, 5), (1, 5), (2, 5), (1, 0)])
        );
    }

    #[test]
    fn one_session_neither_evicts_nor_cuts_another() {
        let now = Instant::now();
        let mut closed = closed(10, 1000);
        // As much as its tail.
        closed.push(now, owner(1, 1), 1, 100);
        for process in 100..200 {
            closed.push(now, owner(1, 2), process, 100);
            let (taken, cuts) = take(&mut closed, now);
            assert!(!taken.contains(&1), "{taken:?}");
            assert!(cuts.iter().all(|(process, _)| *process != 1), "{cuts:?}");
        }
    }

    #[test]
    fn many_sessions_of_one_peer_do_not_evict_another_peer() {
        let now = Instant::now();
        let mut closed = closed(10, 1000);
        closed.push(now, owner(1, 1), 1, 100);
        for process in 100..200 {
            closed.push(now, owner(2, process as usize), process, 100);
            let (taken, cuts) = take(&mut closed, now);
            assert!(!taken.contains(&1), "{taken:?}");
            assert!(cuts.iter().all(|(process, _)| *process != 1), "{cuts:?}");
        }
    }

    /// Its outputs are too small to be halved.
    #[test]
    fn many_small_outputs_of_one_peer_do_not_cut_another_peer() {
        let now = Instant::now();
        let mut closed = closed(100, 1000);
        closed.push(now, owner(1, 1), 1, 400);
        for process in 100..190 {
            closed.push(now, owner(2, process as usize), process, 10);
            let (_, cuts) = take(&mut closed, now);
            assert!(cuts.iter().all(|(process, _)| *process != 1), "{cuts:?}");
        }
        closed.push(now, owner(1, 1), 2, 400);
        let (_, cuts) = take(&mut closed, now);
        assert!(
            cuts.iter().all(|(process, _)| *process < 100),
            "it uses most now: {cuts:?}"
        );
    }
}
