//! Places of open connections. When a peer may have no more, an idle connection gives way.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use outpost_engine::{ActivityGuard, Peer, Place, Shares};
use parking_lot::Mutex;

use crate::{connection::Connection, server::ServerState};

/// The places of all open connections.
pub(crate) struct ConnectionPlaces {
    shares: Shares,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    /// By the order in which they were opened.
    connections: BTreeMap<u64, OpenConnection>,
}

struct OpenConnection {
    peer: Peer,
    /// Freed when it gives way, before it is closed.
    _place: Place,
    /// Dangling until the WebSocket is open.
    connection: Weak<Connection>,
}

/// The place of one open connection. Keeps the server counted as active.
pub(crate) struct ConnectionSlot {
    server: Arc<ServerState>,
    number: u64,
    _active: ActivityGuard,
}

impl ConnectionPlaces {
    pub(crate) fn new(max: usize, for_owner: usize) -> Self {
        ConnectionPlaces {
            shares: Shares::new(max, for_owner),
            open: Mutex::default(),
        }
    }

    /// Takes a place for one more connection of a peer that may have `max`, if it may have one. Otherwise
    /// closes the oldest idle connection of a peer that has as many, if there is one.
    pub(crate) fn take(
        server: &Arc<ServerState>,
        peer: Peer,
        max: Option<usize>,
    ) -> Option<ConnectionSlot> {
        let places = &server.connection_places;
        loop {
            if let Some(place) = places.shares.take_within(peer, max) {
                return Some(ConnectionSlot {
                    server: Arc::clone(server),
                    number: places.add(peer, place),
                    _active: server.engine.activity().track(),
                });
            }
            let idle = places.take_idle(peer, max)?;
            tracing::info!(?peer, "idle connection closed: too many connections");
            idle.gives_way.cancel();
        }
    }

    fn add(&self, peer: Peer, place: Place) -> u64 {
        let mut open = self.open.lock();
        open.last += 1;
        let number = open.last;
        let connection = OpenConnection {
            peer,
            _place: place,
            connection: Weak::new(),
        };
        open.connections.insert(number, connection);
        number
    }

    /// Frees the place of the oldest idle connection of a peer that has as many as `peer`, or of `peer` if
    /// it has all that it may have.
    fn take_idle(&self, peer: Peer, max: Option<usize>) -> Option<Arc<Connection>> {
        let held = self.shares.held_by(peer);
        let is_at_maximum = max.is_some_and(|max| held >= max);
        let mut open = self.open.lock();
        let found = open.connections.iter().find_map(|(number, open)| {
            let has_as_many =
                || open.peer == peer || (!is_at_maximum && self.shares.held_by(open.peer) >= held);
            let connection = open.connection.upgrade()?;
            (connection.is_idle() && has_as_many()).then_some((*number, connection))
        });
        let (number, connection) = found?;
        open.connections.remove(&number);
        Some(connection)
    }
}

impl ConnectionSlot {
    /// Sets the connection that holds this place.
    pub(crate) fn set_connection(&self, connection: &Arc<Connection>) {
        let mut open = self.server.connection_places.open.lock();
        if let Some(open) = open.connections.get_mut(&self.number) {
            open.connection = Arc::downgrade(connection);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.server.connection_places.open.lock();
        open.connections.remove(&self.number);
    }
}
