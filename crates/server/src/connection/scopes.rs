//! The scopes of a connection.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::{ConnectionLink, Scope};

/// A namespace of process ids on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessIdSpace {
    /// `process/spawn`
    Spawn,
    /// `command/exec` with a client's process id.
    Command,
    /// `command/exec` without a process id.
    Unnamed,
    /// `command/exec` of the v0 dialect.
    V0,
}

/// The scopes of a connection, each opened at its first use.
#[derive(Default)]
pub(super) struct Scopes {
    open: [Option<Scope>; 4],
}

impl Scopes {
    /// Returns a scope, opening it if needed. Returns `None` if the server is shutting down.
    pub(super) fn get_or_open(
        &mut self,
        kind: ProcessIdSpace,
        link: &ConnectionLink,
        start_permits: &Arc<Semaphore>,
    ) -> Option<Scope> {
        let scope = &mut self.open[kind as usize];
        if scope.is_none() {
            *scope = Scope::open(&link.server, &link.outbox, &link.feeds, start_permits);
        }
        scope.clone()
    }

    /// Ends all scopes.
    pub(super) fn end(&mut self) {
        for scope in self.open.iter_mut().filter_map(Option::take) {
            scope.end();
        }
    }
}
