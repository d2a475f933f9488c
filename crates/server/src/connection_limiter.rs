//! Limits the number of open connections. When a peer may have no more, an idle one is closed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use outpost_engine::{ActivityGuard, Peer, PeerLimiter, PeerPermit};
use parking_lot::Mutex;

use crate::{connection::Connection, server::ServerState};

/// Limits the number of open connections.
pub(crate) struct ConnectionLimiter {
    permits: PeerLimiter,
    open: Mutex<Open>,
}

/// The open connections.
#[derive(Default)]
struct Open {
    last: u64,
    /// By the order in which they were opened.
    connections: BTreeMap<u64, OpenConnection>,
}

/// An open connection and its permit.
struct OpenConnection {
    peer: Peer,
    /// Freed before the connection is closed.
    _permit: PeerPermit,
    /// Dangling until the WebSocket is open.
    connection: Weak<Connection>,
}

/// The permit of one open connection. Keeps the server counted as active.
pub(crate) struct ConnectionPermit {
    server: Arc<ServerState>,
    number: u64,
    _active: ActivityGuard,
}

impl ConnectionLimiter {
    pub(crate) fn new(max: usize, for_owner: usize) -> Self {
        ConnectionLimiter {
            permits: PeerLimiter::new(max, for_owner),
            open: Mutex::default(),
        }
    }

    /// Takes a permit for one more connection of a peer that may have `max` connections. If there is
    /// none, closes the oldest idle connection of a peer that has at least as many connections, if there
    /// is one.
    pub(crate) fn acquire(
        server: &Arc<ServerState>,
        peer: Peer,
        max: Option<usize>,
    ) -> Option<ConnectionPermit> {
        let limiter = &server.connection_limiter;
        loop {
            if let Some(permit) = limiter.permits.acquire_within(peer, max) {
                return Some(ConnectionPermit {
                    server: Arc::clone(server),
                    number: limiter.add(peer, permit),
                    _active: server.engine.activity().track(),
                });
            }
            let idle = limiter.take_idle(peer, max)?;
            tracing::info!(?peer, "idle connection closed: too many connections");
            idle.gives_way.cancel();
        }
    }

    fn add(&self, peer: Peer, permit: PeerPermit) -> u64 {
        let mut open = self.open.lock();
        open.last += 1;
        let number = open.last;
        let connection = OpenConnection {
            peer,
            _permit: permit,
            connection: Weak::new(),
        };
        open.connections.insert(number, connection);
        number
    }

    /// Frees the permit of the oldest idle connection of a peer that has as many as `peer`, or of `peer` if
    /// it has all that it may have.
    fn take_idle(&self, peer: Peer, max: Option<usize>) -> Option<Arc<Connection>> {
        let held = self.permits.held_by(peer);
        let is_at_maximum = max.is_some_and(|max| held >= max);
        let mut open = self.open.lock();
        let found = open.connections.iter().find_map(|(number, open)| {
            let has_as_many =
                || open.peer == peer || (!is_at_maximum && self.permits.held_by(open.peer) >= held);
            let connection = open.connection.upgrade()?;
            (connection.is_idle() && has_as_many()).then_some((*number, connection))
        });
        let (number, connection) = found?;
        open.connections.remove(&number);
        Some(connection)
    }
}

impl ConnectionPermit {
    /// Sets the connection that holds this permit.
    pub(crate) fn set_connection(&self, connection: &Arc<Connection>) {
        let mut open = self.server.connection_limiter.open.lock();
        if let Some(open) = open.connections.get_mut(&self.number) {
            open.connection = Arc::downgrade(connection);
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.server.connection_limiter.open.lock();
        open.connections.remove(&self.number);
    }
}
