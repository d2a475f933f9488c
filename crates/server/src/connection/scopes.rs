//! What a connection has of the faces whose processes end with it.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::{ConnectionLink, Scope};

/// A namespace of processes that belong to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// `process/spawn`
    Spawn,
    /// `command/exec`, by the client's ids.
    Command,
    /// `command/exec` without an id.
    Unnamed,
    /// `command/exec` of the first exec protocol.
    V0,
}

/// The scopes of a connection, each made when it is first used.
#[derive(Default)]
pub(super) struct Scopes {
    open: [Option<Scope>; 4],
}

impl Scopes {
    /// The scope of a face; none if the server is ending.
    pub(super) fn of(
        &mut self,
        face: Face,
        link: &ConnectionLink,
        running: &Arc<Semaphore>,
    ) -> Option<Scope> {
        let scope = &mut self.open[face as usize];
        if scope.is_none() {
            *scope = Scope::open(&link.server, &link.outbox, &link.feeds, running);
        }
        scope.clone()
    }

    /// The connection is gone.
    pub(super) fn end(&mut self) {
        for scope in self.open.iter_mut().filter_map(Option::take) {
            scope.end();
        }
    }
}
