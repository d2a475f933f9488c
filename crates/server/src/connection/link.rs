//! What a session knows of this connection.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use outpost_engine::{Epoch, Link, Process, Session};
use outpost_rpc::{Outbox, Pulse};
use tokio_util::sync::CancellationToken;

use crate::{
    Server,
    faces::{exec::EventTeller, feed::Feeds},
};

/// A connection, as its session sees it.
pub(crate) struct ConnectionLink {
    pub(crate) server: Server,
    pub(crate) outbox: Outbox,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) pulse: Pulse,
    /// Whether the peer can be pinged at all; one on stdio can't.
    pub(crate) pingable: bool,
    /// Cancelled to drop the connection.
    pub(crate) gone: CancellationToken,
    /// Cancelled when another connection has taken the session.
    pub(crate) replaced: CancellationToken,
    /// A probe is under way.
    pub(crate) probing: Arc<AtomicBool>,
}

impl Link for ConnectionLink {
    fn probe(&self) {
        if !self.pingable || self.probing.swap(true, Ordering::AcqRel) {
            return;
        }
        let beats = self.pulse.beats();
        self.outbox.ping();
        let pulse = self.pulse.clone();
        let gone = self.gone.clone();
        let probing = Arc::clone(&self.probing);
        let within = self.server.settings().stir_within;
        self.server.tasks().spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(within) => {}
                () = gone.cancelled() => return,
            }
            if pulse.beats() == beats {
                tracing::debug!("dropping a connection that does not stir");
                gone.cancel();
            }
            probing.store(false, Ordering::Release);
        });
    }

    fn replaced(&self) {
        self.replaced.cancel();
    }

    fn adopt(&self, session: &Session, epoch: Epoch, process: &Process) {
        let teller = EventTeller::new(process);
        let owner = (session, epoch);
        self.feeds.open(&self.outbox, owner, process, None, teller);
    }
}
