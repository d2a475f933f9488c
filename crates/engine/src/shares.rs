//! Shares of a limited resource per peer.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use parking_lot::Mutex;

/// How many times as many places as are free a peer may hold. A peer alone gets eight ninths of the
/// places, and of the rest the next peer gets eight ninths. Up to eight places one peer gets all.
const HELD_PER_FREE: usize = 8;

/// The identity of a client, by which resources are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// The user that the server runs as, verified by peer credentials.
    Owner,
    /// Another user, verified by peer credentials. No listener admits one yet.
    User(u32),
    /// Any process that connects from this address, see [`Peer::from_address`].
    Address(IpAddr),
    /// Any process that can reach the listener.
    Unverified,
}

impl Peer {
    /// Returns the peer of a TCP connection. All loopback addresses are one peer: a local process can
    /// connect from any of them.
    #[must_use]
    pub fn from_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            loopback if loopback.is_loopback() => Peer::Address(Ipv4Addr::LOCALHOST.into()),
            address => Peer::Address(address),
        }
    }
}

/// Counts the places that each peer holds and decides about admission. Clones share the places.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Also held by each [`Place`].
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// Places for all peers.
    max: usize,
    /// Further places for the owner.
    for_owner: usize,
    held: HashMap<Peer, usize>,
    total: usize,
}

/// A place that a peer holds until this is dropped.
#[derive(Debug)]
pub struct Place {
    peer: Peer,
    state: Arc<Mutex<State>>,
}

impl Shares {
    /// Creates `max` places for all peers and `for_owner` further ones for the owner.
    #[must_use]
    pub fn new(max: usize, for_owner: usize) -> Self {
        Shares {
            state: Arc::new(Mutex::new(State {
                max,
                for_owner,
                held: HashMap::new(),
                total: 0,
            })),
        }
    }

    /// Takes a place for a peer, if it may have one more.
    #[must_use]
    pub fn take(&self, peer: Peer) -> Option<Place> {
        let mut state = self.state.lock();
        if !state.admits(peer) {
            return None;
        }
        state.total += 1;
        *state.held.entry(peer).or_default() += 1;
        let state = Arc::clone(&self.state);
        Some(Place { peer, state })
    }

    /// The number of places that a peer holds.
    #[must_use]
    pub fn held_by(&self, peer: Peer) -> usize {
        let state = self.state.lock();
        state.held.get(&peer).copied().unwrap_or_default()
    }
}

impl State {
    /// Whether a peer may have one more place. A peer that holds few is refused last.
    fn admits(&self, peer: Peer) -> bool {
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

impl Drop for Place {
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

    /// Takes places until one is refused.
    fn fill(shares: &Shares, peer: Peer) -> Vec<Place> {
        std::iter::from_fn(|| shares.take(peer)).collect()
    }

    #[test]
    fn peer_leaves_places_for_others() {
        let shares = Shares::new(4096, 8);
        let first = fill(&shares, Peer::User(1));
        assert_eq!(first.len(), 3641);
        let second = fill(&shares, Peer::User(2));
        assert_eq!(second.len(), 405);
        assert!(shares.take(Peer::User(3)).is_some());
        // The larger one gets no place back before the smaller one has as many.
        drop(first);
        let second_more = fill(&shares, Peer::User(2));
        assert_eq!(second.len() + second_more.len(), 3641);
    }

    #[test]
    fn loopback_addresses_are_one_peer() {
        let peer = |text: &str| Peer::from_address(text.parse().unwrap());
        for loopback in ["127.0.0.2", "127.255.0.1", "::1", "::ffff:127.0.0.3"] {
            assert_eq!(peer(loopback), peer("127.0.0.1"), "{loopback}");
        }
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.2"), peer("192.0.2.1"));
    }

    #[test]
    fn small_limits_are_used_up_by_one_peer() {
        for max in 1..=8 {
            let shares = Shares::new(max, 0);
            let held = fill(&shares, Peer::Unverified);
            assert_eq!(held.len(), max);
            assert!(shares.take(Peer::Owner).is_none());
            drop(held);
            assert_eq!(fill(&shares, Peer::Owner).len(), max);
        }
    }

    #[test]
    fn owner_has_places_of_its_own() {
        let shares = Shares::new(4, 2);
        let others = fill(&shares, Peer::Unverified);
        let owner = fill(&shares, Peer::Owner);
        assert_eq!((others.len(), owner.len()), (4, 2));
        drop(others);
        assert_eq!(shares.held_by(Peer::Owner), 2);
        assert_eq!(fill(&shares, Peer::Unverified).len(), 2);
    }
}
