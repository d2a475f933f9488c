//! The identity of a client, by which limits are counted.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use outpost_sandbox::TurnKey;

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
    /// Whether the peer is a single authenticated user or principal. Its sessions then belong to it
    /// alone.
    #[must_use]
    pub fn is_principal(self) -> bool {
        matches!(self, Peer::Principal(_) | Peer::User(_))
    }

    /// Whether this peer may resume a session of `other` if it knows the id of the session.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_one_peer() {
        let peer = |text: &str| Peer::from_address(text.parse().unwrap());
        for loopback in ["127.0.0.2", "127.255.0.1", "::1", "::ffff:127.0.0.3"] {
            assert_eq!(peer(loopback), peer("127.0.0.1"), "{loopback}");
        }
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.2"), peer("192.0.2.1"));
    }
}
