//! Accepted sockets before their HTTP request is answered.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::Peer;

/// Accepted sockets whose HTTP request is not yet answered. They do not count as connections, so that
/// probes are answered while all connections are in use. When there are too many, the oldest socket of
/// the peer with the most sockets is closed, so that no peer causes the sockets of a peer with fewer to
/// be closed.
pub(crate) struct HttpSockets {
    max: usize,
    /// By peer and the order in which they were accepted. Cancelling closes the socket.
    open: Mutex<HashMap<Peer, BTreeMap<u64, CancellationToken>>>,
    accepted: AtomicU64,
}

impl HttpSockets {
    pub(crate) fn new(max: usize) -> Self {
        HttpSockets {
            max,
            open: Mutex::default(),
            accepted: AtomicU64::new(0),
        }
    }

    /// Adds a socket. Returns its number, and a token that is cancelled when it has to give way.
    pub(crate) fn add(&self, peer: Peer) -> (u64, CancellationToken) {
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        let closed = CancellationToken::new();
        let mut open = self.open.lock();
        open.entry(peer).or_default().insert(number, closed.clone());
        let total: usize = open.values().map(BTreeMap::len).sum();
        if total > self.max
            && let Some(most) = open.values_mut().max_by_key(|sockets| sockets.len())
            && let Some((_, oldest)) = most.pop_first()
        {
            oldest.cancel();
        }
        (number, closed)
    }

    pub(crate) fn remove(&self, peer: Peer, number: u64) {
        let mut open = self.open.lock();
        if let Some(sockets) = open.get_mut(&peer) {
            sockets.remove(&number);
            if sockets.is_empty() {
                open.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_one_peer_do_not_close_those_of_another() {
        let sockets = HttpSockets::new(8);
        let (owner, owner_closed) = sockets.add(Peer::Owner);
        let others: Vec<_> = (0..20).map(|_| sockets.add(Peer::Unverified).1).collect();
        assert!(!owner_closed.is_cancelled());
        let closed = others.iter().filter(|closed| closed.is_cancelled()).count();
        assert_eq!(closed, 13, "the oldest ones of the peer that has most");
        assert!(others[..13].iter().all(CancellationToken::is_cancelled));
        sockets.remove(Peer::Owner, owner);
        assert_eq!(sockets.open.lock().len(), 1);
    }
}
