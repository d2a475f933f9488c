//! The memory of the messages of each peer.

use std::collections::HashMap;

use outpost_engine::Peer;
use outpost_rpc::{MemoryBudget, MemoryShare, PeerMemory};
use parking_lot::Mutex;

/// The memory of the messages of all connections, by peer.
pub(crate) struct PeerMemories {
    budget: MemoryBudget,
    peers: Mutex<HashMap<Peer, PeerMemory>>,
}

impl PeerMemories {
    pub(crate) fn new(budget: MemoryBudget) -> Self {
        PeerMemories {
            budget,
            peers: Mutex::default(),
        }
    }

    /// Creates the share of a new connection. Connections of the server's own user, who is no principal, do
    /// not share: one of its programs cannot keep the others from being served.
    pub(crate) fn share(&self, peer: Peer) -> MemoryShare {
        if !peer.is_principal() {
            return self.budget.share();
        }
        let mut peers = self.peers.lock();
        // Remove the peers without connections.
        peers.retain(|_, memory| memory.is_used());
        let memory = peers.entry(peer).or_insert_with(|| self.budget.peer());
        memory.share()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn connections_of_a_peer_share_its_memory() {
        let memories = PeerMemories::new(MemoryBudget::new(1 << 20, Duration::ZERO));
        let first = memories.share(Peer::User(1));
        let held = first.try_charge(800 << 10);
        assert!(held.is_some());
        // Without its first bytes, which are not counted.
        let more = (128 + 200) << 10;
        assert!(memories.share(Peer::User(1)).try_charge(more).is_none());
        assert!(memories.share(Peer::User(2)).try_charge(more).is_some());
        drop(first);
        memories.share(Peer::User(3));
        assert_eq!(
            memories.peers.lock().len(),
            2,
            "the charge is of the first peer"
        );
    }
}
