//! Shares of a limited resource per peer.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use outpost_sandbox::TurnKey;
use parking_lot::Mutex;

/// How many times as many places as are free a peer may hold. A peer alone gets eight ninths of the
/// places, and of the rest the next peer gets eight ninths. Up to eight places one peer gets all.
pub(crate) const HELD_PER_FREE: usize = 8;

/// The identity of a client, by which resources are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// The user that the server runs as, verified by peer credentials.
    Owner,
    /// Another user of this host, to whom the socket belongs.
    User(u32),
    /// A client that authenticated as a principal.
    Principal(PrincipalKey),
    /// Any process that connects from this address, see [`Peer::from_address`].
    Address(IpAddr),
    /// Any process that can reach the listener.
    Unverified,
}

/// Identifies a principal by a hash of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrincipalKey(pub [u8; 16]);

impl Peer {
    /// Whether it is told apart from all other clients, so that its sessions are its own.
    #[must_use]
    pub fn is_principal(self) -> bool {
        matches!(self, Peer::Principal(_) | Peer::User(_))
    }

    /// Whether a peer may resume a session of another one whose id it knows.
    #[must_use]
    pub fn may_resume(self, other: Peer) -> bool {
        self == other || !(self.is_principal() || other.is_principal())
    }

    /// The key by which one of its clients takes turns.
    pub(crate) fn turn_key(self, client: usize) -> TurnKey {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        TurnKey {
            peer: hasher.finish(),
            client,
        }
    }

    /// Returns the peer of a TCP connection. Addresses that one client can choose from are one peer: those
    /// of loopback, and those of an IPv6 network with a prefix of 64 bits.
    #[must_use]
    pub fn from_address(address: IpAddr) -> Self {
        Peer::Address(match address.to_canonical() {
            loopback if loopback.is_loopback() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(address) => {
                Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into()
            }
            address => address,
        })
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
        self.take_within(peer, None)
    }

    /// Takes a place for a peer that may hold `max` places, if it may have one more.
    #[must_use]
    pub fn take_within(&self, peer: Peer, max: Option<usize>) -> Option<Place> {
        let mut state = self.state.lock();
        let held = state.held.get(&peer).copied().unwrap_or_default();
        if max.is_some_and(|max| held >= max) || !state.admits(peer) {
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
