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
    /// Cancelled when another connection has taken the session, or may have it
    /// because this one does not stir.
    pub(crate) replaced: CancellationToken,
    /// It was given up because it does not stir, and nobody has the session yet.
    pub(crate) given_up: Arc<AtomicBool>,
    /// A probe is under way.
    pub(crate) probing: Arc<AtomicBool>,
    /// A request waits for room, and nobody reads what the peer says meanwhile.
    pub(crate) unread: Arc<AtomicBool>,
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
        let replaced = self.replaced.clone();
        let given_up = Arc::clone(&self.given_up);
        let probing = Arc::clone(&self.probing);
        let unread = Arc::clone(&self.unread);
        let within = self.server.settings().stir_within;
        self.server.tasks().spawn(async move {
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                // What arrives now may have been sent before the link broke, so
                // this says nothing of later: the next refusal asks again.
                () = pulse.beyond(beats) => {}
                () = tokio::time::sleep(within) => {
                    if unread.load(Ordering::Acquire) {
                        // It may have answered, and nobody has looked.
                        probing.store(false, Ordering::Release);
                        return;
                    }
                    tracing::debug!("dropping a connection that does not stir");
                    // As if the one that wants the session had it already: what
                    // waits here is told so.
                    given_up.store(true, Ordering::Release);
                    replaced.cancel();
                }
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
