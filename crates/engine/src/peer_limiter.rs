//! Limits how much of a countable resource each peer holds.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::Peer;

/// A peer may hold up to this many times the free permits: eight ninths of all permits when alone, and
/// eight ninths of the remaining permits for each further peer. Of up to eight permits, one peer gets
/// all.
pub(crate) const HELD_PER_FREE: usize = 8;

/// Counts the permits that each peer holds and decides whether it gets another permit. Clones share the
/// permits.
#[derive(Clone, Debug)]
pub struct PeerLimiter {
    /// Also held by each [`PeerPermit`].
    state: Arc<Mutex<State>>,
}

/// The permits that are held.
#[derive(Debug)]
struct State {
    /// The number of permits for all peers.
    max: usize,
    /// Further permits for the owner.
    for_owner: usize,
    held: HashMap<Peer, usize>,
    total: usize,
}

/// A permit that a peer holds until this is dropped.
#[derive(Debug)]
pub struct PeerPermit {
    peer: Peer,
    state: Arc<Mutex<State>>,
}

impl PeerLimiter {
    /// Creates `max` permits for all peers and `for_owner` further ones for the owner.
    #[must_use]
    pub fn new(max: usize, for_owner: usize) -> Self {
        PeerLimiter {
            state: Arc::new(Mutex::new(State {
                max,
                for_owner,
                held: HashMap::new(),
                total: 0,
            })),
        }
    }

    /// Acquires a permit for a peer, if it may have one more.
    #[must_use]
    pub fn acquire(&self, peer: Peer) -> Option<PeerPermit> {
        self.acquire_within(peer, None)
    }

    /// Acquires a permit for a peer that may hold `max` permits, if it may have one more.
    #[must_use]
    pub fn acquire_within(&self, peer: Peer, max: Option<usize>) -> Option<PeerPermit> {
        let mut state = self.state.lock();
        let held = state.held.get(&peer).copied().unwrap_or_default();
        if max.is_some_and(|max| held >= max) || !state.allows_one_more(peer) {
            return None;
        }
        state.total += 1;
        *state.held.entry(peer).or_default() += 1;
        let state = Arc::clone(&self.state);
        Some(PeerPermit { peer, state })
    }

    /// The number of permits that a peer holds.
    #[must_use]
    pub fn held_by(&self, peer: Peer) -> usize {
        let state = self.state.lock();
        state.held.get(&peer).copied().unwrap_or_default()
    }
}

impl State {
    /// Whether a peer may have one more permit. Peers with many permits are refused first.
    fn allows_one_more(&self, peer: Peer) -> bool {
        let free = self.max.saturating_sub(self.total);
        let held = self.held.get(&peer).copied().unwrap_or_default();
        let kept = if peer == Peer::Owner {
            self.for_owner
        } else {
            0
        };
        held < free.saturating_mul(HELD_PER_FREE) || held < kept
    }
}

impl Drop for PeerPermit {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.total -= 1;
        if let Some(held) = state.held.get_mut(&self.peer) {
            *held -= 1;
            if *held == 0 {
                state.held.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acquires permits until one is refused.
    fn fill(limiter: &PeerLimiter, peer: Peer) -> Vec<PeerPermit> {
        std::iter::from_fn(|| limiter.acquire(peer)).collect()
    }

    #[test]
    fn peer_leaves_places_for_others() {
        let limiter = PeerLimiter::new(4096, 8);
        let first = fill(&limiter, Peer::User(1));
        assert_eq!(first.len(), 3641);
        let second = fill(&limiter, Peer::User(2));
        assert_eq!(second.len(), 405);
        assert!(limiter.acquire(Peer::User(3)).is_some());
        // The peer with more permits gets none back before the other peer has as many.
        drop(first);
        let second_more = fill(&limiter, Peer::User(2));
        assert_eq!(second.len() + second_more.len(), 3641);
    }

    #[test]
    fn small_limits_are_used_up_by_one_peer() {
        for max in 1..=8 {
            let limiter = PeerLimiter::new(max, 0);
            let held = fill(&limiter, Peer::Unverified);
            assert_eq!(held.len(), max);
            assert!(limiter.acquire(Peer::Owner).is_none());
            drop(held);
            assert_eq!(fill(&limiter, Peer::Owner).len(), max);
        }
    }

    #[test]
    fn owner_has_places_of_its_own() {
        let limiter = PeerLimiter::new(4, 2);
        let others = fill(&limiter, Peer::Unverified);
        let owner = fill(&limiter, Peer::Owner);
        assert_eq!((others.len(), owner.len()), (4, 2));
        drop(others);
        assert_eq!(limiter.held_by(Peer::Owner), 2);
        assert_eq!(fill(&limiter, Peer::Unverified).len(), 2);
    }
}
